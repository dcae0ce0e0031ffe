# Completion of kubectl-captf for fish: kubectl-captf completion fish | source
function __kubectl_captf_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l flag (string match -r -- '^--[^=]*=' $words[-1])
    for line in (kubectl-captf __complete $words[2..-1] 2>/dev/null)
        if string match -qr -- '^:[0-9]+$' $line
            if test $line = :0
                __fish_complete_path (string replace -- "$flag" '' $words[-1])
            end
        else
            echo $flag$line
        end
    end
end
complete -c kubectl-captf -f -a '(__kubectl_captf_complete)'
