import { Argument, type Command } from 'commander'
import { helpExamples } from '../terminal/exit.ts'
import type { Io } from '../terminal/io.ts'

export function define(command: Command, io: Io): void {
  command
    .description(
      `Prints a script with which a shell completes commands, options, their values, and the URIs of the mounts here, or of the
server of --url. A server of --command is not started for a completion.`,
    )
    .addArgument(new Argument('<shell>', 'the shell that runs the script').choices(completionShells))
    .addHelpText(
      ...helpExamples(`
  source <(hikidashi completion bash)                   for this bash; to keep it, write the line into ~/.bashrc
  hikidashi completion zsh > "\${fpath[1]}/_hikidashi"   for zsh from the next start on, after compinit
  hikidashi completion fish > ~/.config/fish/completions/hikidashi.fish`),
    )
    .action((shell: Shell) => io.out.write(completionScripts[shell]))
}

export const completionShells = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof completionShells)[number]

/**
 * The scripts call `hikidashi __complete`, which prints one candidate per line, and after a tab its description. For a
 * line `:files` or `:folders` the shell adds files or folders of this machine.
 */
export const completionScripts: Readonly<Record<Shell, string>> = {
  bash: `# hikidashi completion for bash. To use it: source <(hikidashi completion bash)
_hikidashi() {
  local line names='' words=() file
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) names=f ;;
      :folders) names=d ;;
      ?*) words+=("\${line%%$'\\t'*}") ;;
    esac
  done < <("$1" __complete bash "$COMP_LINE" "$COMP_POINT" "$COMP_WORDBREAKS" 2>/dev/null)
  if [[ -n $names && \${#words[@]} -eq 0 ]]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -"$names" -- "$2")
    return
  fi
  COMPREPLY=("\${words[@]}")
  if [[ -n $names ]]; then
    while IFS= read -r file; do
      [[ -d $file ]] && file+=/
      COMPREPLY+=("$(printf %q "$file")")
    done < <(compgen -"$names" -- "$2")
  fi
  # No space after a candidate that ends in a slash or an equals sign: more follows.
  compopt -o nospace 2>/dev/null
  [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} != */ && \${COMPREPLY[0]} != *= ]] && COMPREPLY[0]+=' '
  return 0
}
complete -F _hikidashi hikidashi
`,
  zsh: `#compdef hikidashi
# hikidashi completion for zsh. To use it: hikidashi completion zsh > "\${fpath[1]}/_hikidashi"
_hikidashi() {
  local line value names=''
  local -a described open
  while IFS= read -r line; do
    value=\${line%%$'\\t'*}
    case $line in
      (:files) names=_files ;;
      (:folders) names='_files -/' ;;
      (*/$'\\t'*|*/|*=) open+=("$value") ;;
      (*$'\\t'*) described+=("\${value//:/\\\\:}:\${line#*$'\\t'}") ;;
      (?*) described+=("\${value//:/\\\\:}") ;;
    esac
  done < <("\${words[1]}" __complete words "\${(@Q)words[2,CURRENT]}" 2>/dev/null)
  (( \${#described} )) && _describe -V hikidashi described
  (( \${#open} )) && compadd -S '' -- "\${open[@]}"
  [[ -n $names ]] && \${=names}
  return 0
}
if [[ \${funcstack[1]} == _hikidashi ]]; then
  _hikidashi "$@"
else
  compdef _hikidashi hikidashi
fi
`,
  fish: `# hikidashi completion for fish. To use it: hikidashi completion fish > ~/.config/fish/completions/hikidashi.fish
function __hikidashi_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] __complete words $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :folders
                __fish_complete_directories "$current"
            case '*'
                echo $line
        end
    end
end
complete -c hikidashi -f -a '(__hikidashi_complete)'
`,
}
