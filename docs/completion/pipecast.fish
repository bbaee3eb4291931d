# Completion of pipecast for fish. It offers what pipecast.bash says, which lies beside it or where it is installed; so it
# needs bash 4 or later, too.
set -g __pipecast_here (dirname (status filename))

function __pipecast_offer
    for script in $__pipecast_here/pipecast.bash $__pipecast_here/../../bash-completion/completions/pipecast
        if test -r $script
            bash $script (commandline -opc) (commandline -ct) 2>/dev/null
            return
        end
    end
end

complete -c pipecast -f -a '(__pipecast_offer)'
