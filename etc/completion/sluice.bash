# Completion for sluice in bash. Install as share/bash-completion/completions/sluice.
#
# Commands, their verbs and options are what --help says; sites and ids are what the relay knows.

_sluice_commands() {
	sluice --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p'
}

_sluice_options() {
	sluice "$1" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]+' | sort -u
	printf '%s\n' --config --help
}

# The words that a usage line has behind the command: "sluice queue flush|hold ...".
_sluice_verbs() {
	sluice "$1" --help 2>/dev/null |
		sed -nE "s/^(usage:|      ) sluice $1 +\[?([a-z|]+)\]?( .*)?$/\2/p" | tr '|' '\n'
}

# Names that peers have chosen are not to be expanded by the shell.
_sluice_sites() {
	sluice dest --tabs 2>/dev/null | cut -f 1 | grep -E '^[][A-Za-z0-9.,;:_-]+$'
}

_sluice_ids() {
	sluice queue list --json "$@" 2>/dev/null | head -n 200 | sed -n 's/^{"id":"\([0-9A-Z]*\)".*/\1/p'
}

_sluice_values() {
	case $1 in
	--queue) echo "incoming active deferred hold" ;;
	--site) _sluice_sites ;;
	--type) echo "rsa2048 ed25519" ;;
	--day) echo "today yesterday" ;;
	*) return 1 ;;
	esac
}

_sluice_arguments() {
	case $1/$2 in
	queue/list | queue/show | queue/flush | queue/hold | queue/requeue | queue/delete | queue/bounce) _sluice_ids ;;
	queue/release) _sluice_ids --queue hold ;;
	queue/* | dest/) _sluice_verbs "$1" ;;
	dest/list | dest/show | dest/suspend | dest/resume | dest/reset) _sluice_sites ;;
	dest/*) _sluice_verbs dest ;;
	explain/*) _sluice_sites && _sluice_ids ;;
	trace/*) _sluice_ids ;;
	shape/*) echo "maildrop incoming active deferred hold" ;;
	config/*) sluice config 2>/dev/null | cut -d ' ' -f 1 ;;
	*) _sluice_verbs "$1" ;;
	esac
}

_sluice() {
	local word before words
	# A site has colons in its name, at which bash parts words.
	if declare -F _get_comp_words_by_ref >/dev/null; then
		local cur prev cword
		_get_comp_words_by_ref -n : cur prev words cword
		word=$cur before=$prev
	else
		local cword=$COMP_CWORD
		words=("${COMP_WORDS[@]}")
		word=${words[cword]} before=${words[cword - 1]}
	fi
	local command=${words[1]} verb=${words[2]} choice=""
	[ "$cword" -gt 2 ] || verb=""
	COMPREPLY=()
	if [ "$cword" -eq 1 ]; then
		choice="$(_sluice_commands) --help --version"
	elif [[ $before == -c || $before == --config || $before == --dir || $before == --plot ||
		$command/$before == dkim/-o || $before == --output || $before == --log ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
	elif ! choice=$(_sluice_values "$before"); then
		if [[ $word == -* ]]; then
			choice=$(_sluice_options "$command")
		else
			choice=$(_sluice_arguments "$command" "$verb")
		fi
	fi
	local one
	for one in $choice; do
		[[ $one == "$word"* ]] && COMPREPLY+=("$one")
	done
	if [ ${#COMPREPLY[@]} -eq 0 ] && [ "$cword" -gt 1 ] && [[ $word != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
	fi
	if declare -F __ltrim_colon_completions >/dev/null; then
		__ltrim_colon_completions "$word"
	fi
}

complete -F _sluice sluice
