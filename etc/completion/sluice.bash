# Completion for sluice in bash. Install as share/bash-completion/completions/sluice.

_sluice_ids() {
	sluice queue list --json "$@" 2>/dev/null | sed -n 's/.*"id":"\([^"]*\)".*/\1/p'
}

_sluice() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]} verb=${COMP_WORDS[2]} words=""
	COMPREPLY=()
	case $before in
	-c | --config | --key | -d | --dir | -f | --file)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
		;;
	--queue)
		words="incoming active deferred hold"
		;;
	--from | --to | --domain | --older | --reason | --timeout | --delay | --count)
		return
		;;
	*)
		if [ "$COMP_CWORD" -eq 1 ]; then
			words="serve check config sendmail queue user stats top reload restart stop sink passwd --help --version"
		else
			words=$(_sluice_words "$command" "$verb")
		fi
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

_sluice_words() {
	local filter="--queue --from --to --domain --older --reason"
	case $1 in
	check) echo "--strict" ;;
	config) echo "--defaults --sample --manual $(sluice config 2>/dev/null | cut -d' ' -f1)" ;;
	stats) echo "--json" ;;
	passwd) echo "--file --delete --crypt --iterations" ;;
	top) echo "--delay --count" ;;
	user) echo "list show suspend resume reset --json" ;;
	stop) echo "--drain --timeout" ;;
	sink) echo "--listen --dir --delay --limit --refuse --size --no-pipelining --no-chunking --count --quiet --verbose" ;;
	queue)
		case $2 in
		list) echo "$filter --json $(_sluice_ids)" ;;
		show) echo "--envelope --headers --body --json $(_sluice_ids)" ;;
		check) echo "--repair --json" ;;
		release) echo "$filter --all $(_sluice_ids --queue hold)" ;;
		flush | hold | requeue | delete | bounce) echo "$filter --all $(_sluice_ids)" ;;
		*) echo "list show flush hold release requeue delete bounce check" ;;
		esac
		;;
	esac
	echo "--config --help"
}

complete -F _sluice sluice
