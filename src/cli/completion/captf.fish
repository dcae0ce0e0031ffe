# Completion of kubectl-captf for fish: kubectl-captf completion fish | source
function __kubectl_captf_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l flag ''
    if string match -qr -- '^--[^=]*=' "$current"
        set flag (string match -r -- '^--[^=]*=' "$current")
    end
    for line in (kubectl-captf __complete $before[2..-1] "$current" 2>/dev/null)
        if string match -qr -- '^:[0-9]+$' $line
            if test $line = :0
                __fish_complete_path (string replace -- "$flag" '' "$current")
            end
        else
            printf '%s\n' "$flag$line"
        end
    end
end
complete -c kubectl-captf -f -a '(__kubectl_captf_complete)'
