import * as z from '../../schema/builder.ts'
import { glob, text } from '../../schema/fields.ts'
import { refusal } from '../../schema/refusals.ts'
import { pathEffects } from '../../schema/shapes.ts'
import { defineSourceSchema } from '../source.ts'

const envShape = {
  file: text.optionalKey(
    'A dotenv file whose variables are served, relative to the configuration file. By default the variables of the server process.',
  ),
  allow: z
    .array(
      glob.refine((pattern) => !pattern.includes('/'), {
        error: refusal('No variable has a slash in its name.', 'Write a name, or a glob over names such as "LC_*".'),
      }),
    )
    .optionalKey(
      'Variables whose values are shown, by name or glob. A name that sounds secret needs an entry without a wildcard. By default none: only names are shown.',
    ),
}

export const source = defineSourceSchema({
  about: 'Environment variables, without their secrets.',
  shape: envShape,
  needs: { file: 'file' },
  effects: {
    always: ({ file }) => (file === undefined ? [{ kind: 'reads', what: 'the environment of the process' }] : []),
    options: { file: pathEffects, allow: 'none' },
  },
})
