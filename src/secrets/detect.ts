import { type Finding, type FindOptions, findOwn, inSource, viewsFor } from './find.ts'
import { findByLint } from './lint.ts'

/** Finds the secrets in a text with everything there is, in no order; they may overlap. For workers: it takes its time. */
export async function findSecrets(text: string, options: FindOptions): Promise<readonly Finding[]> {
  const found = [...findOwn(text, options)]
  if (options.without?.includes('lint') === true) return found
  for (const view of viewsFor(text, options))
    for (const span of await findByLint(view.text)) found.push(inSource(view, 'lint', span))
  return found
}
