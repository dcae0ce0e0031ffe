# Completion of kubectl-captf for bash: source <(kubectl-captf completion bash)
_kubectl_captf() {
  local cur=${COMP_WORDS[COMP_CWORD]} line value directive=4
  local -a words=("${COMP_WORDS[@]:1:COMP_CWORD}") joined=()
  # Bash parts words at `=` and `:`; they are put together again.
  for line in "${words[@]}"; do
    if ((${#joined[@]})) && [[ $line == [=:] || ${joined[-1]} == *[=:] && $line != -* ]]; then
      joined[-1]+=$line
    else
      joined+=("$line")
    fi
  done
  [[ $cur != [=:] ]] || cur=
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :[0-9]* ]]; then
      directive=${line#:}
      continue
    fi
    value=${line%%$'\t'*}
    [[ ${joined[-1]} != *:* || ${joined[-1]} == *=* ]] || value=${value#"${joined[-1]%"$cur"}"}
    [[ $value != "$cur"* ]] || COMPREPLY+=("$value")
  done < <(kubectl-captf __complete "${joined[@]}" 2>/dev/null)
  ((!(directive & 2))) || compopt -o nospace 2>/dev/null
  if ((!${#COMPREPLY[@]} && !(directive & 4))); then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
  fi
}
complete -F _kubectl_captf kubectl-captf
