import * as z from '../../schema/builder.ts'
import { glob, text } from '../../schema/fields.ts'

/** The options of a mount whose provider is `packages`. */
export const packagesShape = {
  root: text.describe(
    'The folder with the lock file and node_modules. A relative path starts at the configuration file.',
  ),
  packages: z
    .array(glob)
    .min(1)
    .exactOptional()
    .describe('The packages that are served, by globs over their names such as "@types/*". By default all.'),
}
