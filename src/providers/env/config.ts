import * as z from '../../schema/builder.ts'
import { glob, text } from '../../schema/fields.ts'
import { refusal } from '../../schema/refusals.ts'

/** The options of a mount whose provider is `env`. */
export const envShape = {
  file: text
    .exactOptional()
    .describe(
      'A dotenv file whose variables are served, relative to the configuration file. By default those of the process that serves.',
    ),
  allow: z
    .array(
      glob.refine((pattern) => !pattern.includes('/'), {
        error: refusal('No variable has a slash in its name.', 'Write a name, or a glob over names such as "LC_*".'),
      }),
    )
    .exactOptional()
    .describe(
      'The variables whose values are shown, by name or glob. A name that sounds secret has to be written out, without a wildcard. By default none: only names are shown.',
    ),
}
