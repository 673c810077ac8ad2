import { defined } from '../core/kit/defined.ts'
import type { Provider } from '../core/provider.ts'
import { documents } from '../wrap/documents.ts'
import type { RedactedOptions } from '../wrap/redacted.ts'
import { hidesPaths } from './hidden-paths.ts'
import type { MountConfig } from './schema.ts'

type DocumentsConfig = Extract<
  MountConfig,
  { readonly provider: 'files' | 'git' | 's3' | 'gcs' | 'gdrive' | 'packages' | 'prompts' | 'web' }
>

/** Makes documents of the files of a provider, as its mount says. */
export async function withDocuments(
  provider: Provider,
  config: DocumentsConfig,
  redaction: Omit<RedactedOptions, 'mode'>,
): Promise<Provider> {
  const { language, encodings, frontMatter, readings = true, redact = 'off' } = config
  const languages = languagesOf(config)
  const rules = config.provider === 'files' ? (config.rules ?? []) : []
  const defaultExcludes = config.provider === 'files' ? config.defaultExcludes : undefined
  const { except } = typeof defaultExcludes === 'object' ? defaultExcludes : {}
  const hidden = { ...redaction, ...defined({ except }) }
  // Loaded where secrets are looked for: the detectors are much code.
  const redacting = redact === 'off' ? undefined : await import('../wrap/redacted.ts')
  const limits = typeof readings === 'boolean' ? {} : readings
  const made = documents(provider, {
    ...defined({ language, encodings }),
    ...(frontMatter === undefined ? {} : { frontMatter: [frontMatter].flat() }),
    // Of what is in another encoding, the heading is only known once it is decoded.
    headings: rules.flatMap(({ title, match }) => (title === 'heading' ? [match].flat() : [])),
    ...defined({ languages }),
    readings: readings !== false && {
      ...defined({ maxBytes: limits.maxBytes, timeoutMs: limits.timeout }),
    },
    ...(redacting === undefined || redact === 'off'
      ? {}
      : { through: (whole) => redacting.redacted(whole, { ...hidden, mode: redact }) }),
  })
  // It parses front matter: loaded where there are skills.
  if (config.skills === undefined || config.skills === false) return made
  return (await import('../skills/index.ts')).describedSkills(made)
}

/**
 * The languages that documents are told apart by. None, where rules hide some paths: a document would name what not everybody
 * may see. None elsewhere than in files either, unless they are named: looking for twins there takes a request for each.
 */
function languagesOf({ provider, languages, access = [] }: DocumentsConfig): readonly string[] | undefined {
  if (hidesPaths(access)) return []
  return languages ?? (provider === 'files' ? undefined : [])
}

/** The encodings that are told to a decoder. */
export function encodingOptions({ language, encodings }: Pick<DocumentsConfig, 'language' | 'encodings'>) {
  return {
    ...defined({ language, rules: encodings }),
  }
}
