import { z } from 'zod'
import { toZod } from './explain.ts'
import { loadConfigSchema } from './schema.ts'

/** The JSON Schema of `hikidashi.json` (draft-07, which every editor supports), made from the schema that validates it. */
export async function configJsonSchema(): Promise<Readonly<Record<string, unknown>>> {
  const { $schema, ...schema } = z.toJSONSchema(toZod(await loadConfigSchema()), { target: 'draft-7', io: 'input' })
  return {
    $schema,
    title: 'hikidashi.json',
    description: 'What hikidashi serves, and how.',
    // Settings for editors that support them: comments and trailing commas are allowed.
    allowComments: true,
    allowTrailingCommas: true,
    ...schema,
  }
}

/** The schema as the text of `config.schema.json`. */
export async function formatConfigSchema(): Promise<string> {
  return `${JSON.stringify(await configJsonSchema(), undefined, 2)}\n`
}
