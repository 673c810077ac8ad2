import { Argument, type Command } from 'commander'
import { type Shell, scripts, shells } from '../operations/completion-scripts.ts'
import { exitCodeHelp } from '../terminal/exit.ts'
import type { Io } from '../terminal/io.ts'

export function define(command: Command, io: Io): void {
  command
    .description(
      `Prints a script that has a shell complete commands, options, their values, and the URIs of what is served from here, or from
the server of --url. A server of --command is not started to complete a word.`,
    )
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .addHelpText(
      'after',
      `
Examples:
  source <(hikidashi completion bash)                   for this bash; to keep it, write the line into ~/.bashrc
  hikidashi completion zsh > "\${fpath[1]}/_hikidashi"   for zsh from the next start on, after compinit
  hikidashi completion fish > ~/.config/fish/completions/hikidashi.fish
${exitCodeHelp}`,
    )
    .action((shell: Shell) => io.out.write(scripts[shell]))
}
