#compdef kubectl-captf
# Completion of kubectl-captf for zsh: source <(kubectl-captf completion zsh)
_kubectl_captf() {
  local line value directive=4
  local -a shown values
  for line in "${(@f)$(kubectl-captf __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == :[0-9]* ]]; then
      directive=${line#:}
    elif [[ -n $line ]]; then
      value=${line%%$'\t'*}
      values+=("$value")
      if [[ $line == *$'\t'* ]]; then
        shown+=("$value  -- ${line#*$'\t'}")
      else
        shown+=("$value")
      fi
    fi
  done
  local -a options
  ((directive & 2)) && options+=(-S '')
  [[ $PREFIX == --*=* ]] && compset -P '*='
  if (($#values)); then
    compadd "${options[@]}" -l -d shown -a values
  elif ((!(directive & 4))); then
    _files
  fi
}
(($+functions[compdef])) || { autoload -Uz compinit && compinit -u }
compdef _kubectl_captf kubectl-captf
