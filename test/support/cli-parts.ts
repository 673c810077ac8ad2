// The modules with which `cli-here.ts` runs commands: an entry of the bundle, which loads ten times faster than the modules of
// `src/`.

export { runCommandLine as runCommand } from '../../src/cli/run.ts'
export { createOutput, writeError } from '../../src/cli/terminal/io.ts'
export { createSecrets, secretsInArguments, secretsInEnvironment } from '../../src/cli/terminal/secrets.ts'
export { escapeLines } from '../../src/cli/terminal/text.ts'
