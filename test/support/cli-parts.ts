// What `cli-here.ts` runs commands with: an entry of the bundle, which is loaded in a tenth of the time that the modules of `src/` take.

export { run as runCommand } from '../../src/cli/run.ts'
export { createOutput, writeError } from '../../src/cli/terminal/io.ts'
export { createSecrets, secretsInArguments, secretsInEnvironment } from '../../src/cli/terminal/secrets.ts'
export { escapeLines } from '../../src/cli/terminal/text.ts'
