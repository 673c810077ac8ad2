import { invalid } from '../core/errors.ts'
import type { Embedder } from './embedder.ts'

/** The used part of the types of `@huggingface/transformers` (4.x). */
interface Transformers {
  readonly env: { allowRemoteModels: boolean; localModelPath: string }
  pipeline(task: 'feature-extraction', model: string): Promise<Extract>
}

interface Extract {
  (texts: readonly string[], options: { pooling: 'mean'; normalize: true }): Promise<{ tolist(): number[][] }>
  dispose(): Promise<unknown>
}

/**
 * The package is large and not a dependency: users install it themselves. The name is a variable, so that no compiler resolves
 * it.
 */
const packageName: string = '@huggingface/transformers'

/** @throws ResourceError `invalid` if the package is not installed. */
export async function createLocalEmbedder(model: string, { folder }: { readonly folder?: string }): Promise<Embedder> {
  const library = (await import(packageName).catch(() => undefined)) as Transformers | undefined
  if (library === undefined)
    throw invalid(
      `A local model needs the package ${packageName}. Install it beside hikidashi: npm install ${packageName}`,
      'package',
    )
  if (folder !== undefined) {
    library.env.allowRemoteModels = false
    library.env.localModelPath = folder
  }
  let loading: Promise<Extract> | undefined
  const load = () => {
    loading ??= library.pipeline('feature-extraction', model).catch(() => {
      loading = undefined
      throw new Error('The model cannot be loaded.')
    })
    return loading
  }
  return {
    model,
    embed: async (texts) => {
      const extract = await load()
      return (await extract(texts, { pooling: 'mean', normalize: true })).tolist()
    },
    close: async () => {
      await (await loading?.catch(() => undefined))?.dispose()
    },
  }
}
