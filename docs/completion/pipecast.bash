# Completion of pipecast for bash: commands, options, their values where they are known, files by their ending. Needs
# nothing but bash 4 or later. tests/golden/test_manual.py holds it equal to what `pipecast COMMAND --help` says.
# Run as a program, it prints what it offers for the last of its words: the completions for zsh and fish ask it.

# Of the options of a command that stand for keys of a setting, as `pipecast` has them: the options; with one of them, the
# words that it takes.
_pipecast_flags() {
    local option commands kind words
    while read -r option commands kind words; do
        [[ ,$commands, == *,$1,* && ${2:-$option} == "$option" ]] || continue
        [[ ${2-} ]] || echo "$option"
        [[ ${2-} && $words ]] && { [[ $kind == list ]] && printf -- "--list "; echo "$words"; }
    done < <("$pipecast" list keys --format flags 2>/dev/null)
}

# The options of a command; those that take a value end in "=". The long one stands before its letter.
_pipecast_options() {
    case $1 in
    run)
        echo --megatron= --output= -o= --format= --columns= --color= --jobs= -j= --shard= --fresh --set= --allow-outside --quiet -q --help -h
        _pipecast_flags run
        ;;
    plan)
        echo --objective= --top= --most-iteration= --most-cost= --deadline= --budget= --batch-per= --output= -o= --format= --columns= --color= --jobs= -j= --cache= --shard= --fresh --all-variants \
            --each= --map= --seq-mix= --sensitivity --anew --exhaustive --set= --allow-outside --quiet -q --help -h
        _pipecast_flags plan
        ;;
    score) echo --output= -o= --by= --conditions= --figure= --dark --format= --set= --allow-outside --jobs= -j= --quiet -q --help -h ;;
    schedule)
        echo --devices= -p= --microbatches= -m= --chunks= -v= --slices= --slice-times= --times= --vocab-times= --comm= --release-b= --keep= --memory-limit= --out-of-memory= --making= --goal= --improve --engine= --block= --block-steps= \
            --robust= --jitter= --gpu-jitter= --link-jitter= --slow-factor= --slow-stage= --samples= --seed= --format= --figure= --dark --help -h
        ;;
    figure)
        echo --output= -o= --list --run= --top= --x= --y= --series= --panels= --style= --published --scenario= --title= \
            --label= --x-label= --y-label= --x-range= --y-range= --log= --time= --stages= --microbatches= --dark --help -h
        ;;
    export) echo --run= --to= --table= --message-size= --scenario= --output= -o= --help -h ;;
    compare) echo --columns= --tolerance= --sort= --format= --all --exit-code --run= --iteration= --figure= -o= --dark --help -h ;;
    merge) echo --quiet -q --format= --columns= --color= --jobs= -j= --allow-outside --help -h ;;
    import) echo --output= -o= --devices= --placement= --skip= --quiet -q --help -h ;;
    calibrate)
        echo --output= -o= --quick --tiny --device= --gpu= --kernels-only --transfers-only --attention-library= \
            --seed= --replay= --stage= --replay-kernels= --profile= --allow-outside --quiet -q --help -h
        ;;
    profile)
        echo --output= -o= --format= --figure= --residuals= --fit= --dark --device= --gpu= --processors= --library= --site= \
            --collective= --link= --ranks= --nodes= --parameters= --by= --profile= --set= --allow-outside --jobs= -j= --quiet -q --help -h
        ;;
    list) echo --format= --help -h ;;
    esac
}

# Words that begin as what is being completed does. Of a list (a,b,c) only the last entry is completed.
_pipecast_words() {
    local list= word
    if [[ ${1-} == --list ]]; then
        shift
        [[ $cur == *,* ]] && list=${cur%,*},
    fi
    for word; do
        [[ $list$word == "$cur"* ]] && COMPREPLY+=("$list$word")
    done
}

# Files whose names end in one of the arguments, and folders.
_pipecast_files() {
    local ending name path
    compopt -o filenames 2>/dev/null
    while IFS= read -r name; do
        path=${name/#\~\//$HOME/}
        [[ -d $path ]] && COMPREPLY+=("$name")
        for ending; do
            [[ -f $path && $name == *"$ending" ]] && COMPREPLY+=("$name")
        done
    done < <(compgen -f -- "$cur")
}

# The names that `pipecast list` has, in its first column or that of the number given; models, machines and profiles have a
# line of headings.
_pipecast_names() {
    local -a line
    local text
    {
        [[ $1 == models || $1 == machines || $1 == profiles ]] && IFS= read -r
        while IFS= read -r text; do
            read -ra line <<<"$text"
            [[ $text != ' '* ]] && echo "${line[${2:-0}]}"
        done
    } < <("$pipecast" list "$1" 2>/dev/null) | sort -u
}

# What `figure --list` says can be drawn of the results file that stands on the line: all, or only what is a run, has links,
# or says what its memory is made of.
_pipecast_drawn() {
    local kind name title
    while read -r kind name title; do
        [[ -z ${1:-} && $kind == links ]] && name=links
        [[ -z ${1:-} && $kind == kinds ]] && name=memory-kinds
        [[ ${1:-$kind} == "$kind" ]] && echo "$name"
    done < <("$pipecast" figure "$file" --list 2>/dev/null) | sort -u
}

# The columns of that file.
_pipecast_columns() {
    local head
    IFS= read -r head < <("$pipecast" export "$file" --to csv 2>/dev/null)
    echo "${head//,/ }"
}

# What may stand behind an option.
_pipecast_values() {
    case $1:$2 in
    schedule:--out-of-memory) _pipecast_words fail wait ;;
    schedule:--making) _pipecast_words costs equal published torch megatron ;;
    schedule:--robust) _pipecast_words none mean p95 ;;
    schedule:--goal) _pipecast_words span makespan ;;
    schedule:--engine) _pipecast_words auto events ;;
    schedule:--format) _pipecast_words table json text torch-csv block ;;
    schedule:--block) _pipecast_files .yaml ;;
    schedule:--block-steps) _pipecast_words none squeeze reorder ;;
    list:--format)
        _pipecast_words table json
        [[ ${file:-keys} == keys ]] && _pipecast_words markdown flags
        ;;
    plan:--format) _pipecast_words table csv json megatron torchtitan ;;
    *:--format) _pipecast_words table csv json ;;
    *:--color) _pipecast_words auto always never ;;
    compare:--sort) _pipecast_words run change ;;
    compare:--columns) _pipecast_words --list all $(_pipecast_columns) ;;
    run:--columns | plan:--columns)
        _pipecast_words --list all run name model machine gpus tp pp dp virtual_pp schedule microbatch_size microbatches \
            global_batch seq_len recompute zero status iteration_s tokens_per_s_per_gpu samples_per_s_per_gpu \
            tflops_per_gpu mfu hfu bubble_rate_span memory_gib_max cost_per_million_tokens parameters
        ;;
    plan:--each | plan:--map)
        _pipecast_words --list machine precision gpus global_batch tp pp dp cp cp_comm_type ep etp chunks microbatch_size \
            schedule layout recompute offload zero
        ;;
    plan:--batch-per) _pipecast_words all replica ;;
    plan:--objective) _pipecast_words --list throughput memory cost ;;
    run:--model | plan:--model) _pipecast_words --list $(_pipecast_names models); _pipecast_files .yaml .json ;;
    run:--software) _pipecast_words --list $(_pipecast_names software); _pipecast_files .yaml ;;
    plan:--software) _pipecast_words $(_pipecast_names software); _pipecast_files .yaml ;;
    run:--precision | plan:--precision)
        _pipecast_words --list $(_pipecast_names precisions)
        _pipecast_files .yaml
        ;;
    run:--machine | plan:--machine) _pipecast_words --list $(_pipecast_names machines); _pipecast_files .yaml ;;
    run:--megatron) _pipecast_files .sh .yaml .txt .log ;;
    run:--schedule) _pipecast_words --list $(_pipecast_names schedules); _pipecast_files .csv ;;
    plan:--schedule) _pipecast_words --list $(_pipecast_names schedules) ;;
    run:--times | schedule:--times) _pipecast_files .yaml .json .csv ;;
    run:--profile | plan:--profile) _pipecast_words none $(_pipecast_names profiles); _pipecast_files .h5 ;;
    plan:--layout) _pipecast_words even ends own balanced balanced-memory auto ;;
    run:--zero | plan:--zero) _pipecast_words --list 0 1 2 3 ;;
    figure:--y) _pipecast_words --list $(_pipecast_columns) ;;
    figure:--series | figure:--panels) _pipecast_words --list $(_pipecast_columns) ;;
    figure:--x) _pipecast_words $(_pipecast_columns) ;;
    figure:--style) _pipecast_words points lines bars ;;
    figure:--log) _pipecast_words x y xy ;;
    export:--to) _pipecast_words chrome csv torch-csv chakra json ;;
    import:--output | import:-o) _pipecast_files .yaml ;;
    import:--placement) _pipecast_words interleaved v ;;
    figure:--run)
        if [[ $drawn == memory-kinds ]]; then _pipecast_words $(_pipecast_drawn kinds); else _pipecast_words $(_pipecast_drawn links); fi
        ;;
    export:--table) _pipecast_words passes transfers levels kinds links loads flows queue memory work ;;
    export:--run | compare:--run) _pipecast_words $(_pipecast_drawn run) ;;
    export:--output | export:-o) _pipecast_files .json .csv ;;
    figure:--output | figure:-o | compare:-o | *:--figure) _pipecast_files .svg .png .pdf ;;
    plan:--output | plan:-o) _pipecast_files .h5 .toml .sh ;;
    *:--output | *:-o) _pipecast_files .h5 ;;
    *:--gpu) _pipecast_words $(_pipecast_names machines 1) ;;
    calibrate:--replay) _pipecast_files .yaml ;;
    calibrate:--replay-kernels) _pipecast_files .csv ;;
    calibrate:--attention-library) _pipecast_files .so ;;
    profile:--parameters) _pipecast_words --list gemm attention memory launch network overlap overhead ;;
    profile:--profile | calibrate:--profile) _pipecast_files .h5 ;;
    profile:--link) _pipecast_words nvlink pcie network loopback ;;
    run:--* | plan:--*) _pipecast_words $(_pipecast_flags "$1" "$2=") ;;
    esac
    return 0
}

# What may stand where no option does; $2 is how many such words stand before it.
_pipecast_operands() {
    case $1:$2 in
    run:* | plan:0) _pipecast_files .yaml ;;
    score:0) _pipecast_files .csv ;;
    schedule:0) _pipecast_words best $(_pipecast_names schedules); _pipecast_files .csv ;;
    figure:1) _pipecast_words $(_pipecast_drawn) ;;
    compare:0 | figure:0 | export:0 | merge:*) _pipecast_files .h5 ;;
    compare:1) _pipecast_files .h5 .json .gz ;;
    compare:*) _pipecast_files .json .gz ;;
    help:0) _pipecast_words $commands ;;
    import:0) _pipecast_words deepspeed hf kineto megatron nemo ;;
    import:*) _pipecast_files .json .gz .yaml .sh .txt .log ;;
    list:0) _pipecast_words schedules models machines software precisions profiles scenarios keys ;;
    profile:0) _pipecast_words show fit tune compare ;;
    profile:1) _pipecast_words $(_pipecast_names profiles); _pipecast_files .h5 .csv .txt ;;
    profile:*) _pipecast_files .h5 .csv .txt ;;
    esac
    return 0
}

_pipecast() {
    local pipecast=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
    local commands='run plan score schedule figure export compare merge import calibrate profile list'
    local options option= word awaited= file= drawn= operands=0 i
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _pipecast_words $commands help version --help --version -h -V
        return
    fi
    options=" $(_pipecast_options "$command") "
    options=${options//$'\n'/ }
    for ((i = 2; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == = ]]; then # bash takes --name=value apart
            awaited=$option
        elif [[ $awaited ]]; then
            awaited=
        elif [[ $word == -?* ]]; then
            option=$word
            [[ $options == *" $word= "* ]] && awaited=$word
        else
            [[ $file ]] && drawn=${drawn:-$word} # the second
            [[ $file ]] || file=$word # the first
            ((++operands))
        fi
    done
    [[ $cur == = && $awaited ]] && cur=
    if [[ $awaited ]]; then
        _pipecast_values "$command" "$awaited"
    elif [[ $cur == -* ]]; then
        _pipecast_words ${options//=/}
    else
        _pipecast_operands "$command" "$operands"
    fi
}

# Other shells leave --name=value whole, and want to know which words are folders.
_pipecast_print() {
    local COMP_WORDS=() COMP_CWORD COMPREPLY=() before= word
    for word; do
        before=
        if [[ $word == --*=* ]]; then
            before=${word%%=*}=
            COMP_WORDS+=("${word%%=*}" = "${word#*=}")
        else
            COMP_WORDS+=("$word")
        fi
    done
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    ((COMP_CWORD > 0)) && _pipecast
    for word in ${COMPREPLY[@]+"${COMPREPLY[@]}"}; do
        [[ -d ${word/#\~\//$HOME/} ]] && word+=/
        printf '%s\n' "$before$word"
    done
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    _pipecast_print "$@"
else
    complete -F _pipecast pipecast
fi
