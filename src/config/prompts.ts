import { defined } from '../core/kit/defined.ts'
import type { Provider } from '../core/provider.ts'
import { providers } from '../providers/index.ts'
import { withDocuments } from './documents.ts'
import { resolveFolder } from './folder.ts'
import type { MountSettings } from './mount-settings.ts'
import type { MountConfig } from './schema.ts'

/** Opens a folder of prompts: its files as documents, of which the prompts are made, so that these are redacted as they are. */
export async function openPrompts(
  config: Extract<MountConfig, { readonly provider: 'prompts' }>,
  folder: string,
  { log, store: _, ...redaction }: MountSettings,
): Promise<Provider> {
  const [{ files }, { prompts }] = await Promise.all([providers.files(), providers.prompts()])
  const { limit, include = ['**/*.md'], frontMatter = ['**/*.md'] } = config
  const source = await files({ ...config, include, root: resolveFolder(config.root, folder), log })
  return prompts({
    source: await withDocuments(source, { ...config, frontMatter }, { ...redaction, log }),
    log,
    ...defined({ limit }),
  })
}
