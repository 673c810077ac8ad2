import { z } from 'zod'
import { toZod } from './explain.ts'
import { configSchema } from './schema.ts'

/** The JSON Schema (draft-07, which every editor knows) of `hikidashi.json`, made from the schema that validates it. */
export function configJsonSchema(): Readonly<Record<string, unknown>> {
  const { $schema, ...schema } = z.toJSONSchema(toZod(configSchema), { target: 'draft-7', io: 'input' })
  return {
    $schema,
    title: 'hikidashi.json',
    description: 'What hikidashi serves, and how.',
    // Editors that know these two accept what our own parser does.
    allowComments: true,
    allowTrailingCommas: true,
    ...schema,
  }
}

/** The schema as the text of `config.schema.json`. */
export function formatConfigSchema(): string {
  return `${JSON.stringify(configJsonSchema(), undefined, 2)}\n`
}
