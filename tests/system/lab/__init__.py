# SPDX-License-Identifier: ISC
"""The lab: servers, clients and peers that the system tests put around the relay."""
