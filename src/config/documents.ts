import { defined } from '../core/kit/defined.ts'
import type { Provider } from '../core/provider.ts'
import type { DocumentFacts, OpenContext } from '../providers/source.ts'
import type * as z from '../schema/builder.ts'
import type { documentsShape } from '../schema/documents.ts'
import type { MountOptions } from '../schema/mount.ts'
import { documents } from '../wrap/documents.ts'
import { hidesPaths } from './hidden-paths.ts'

type DocumentOptions = Partial<z.output<z.Members<typeof documentsShape>>> & Pick<MountOptions, 'access'>

/** Makes documents of the files of a provider, as its mount says. */
export async function withDocuments(
  provider: Provider,
  options: DocumentOptions,
  redaction: OpenContext['redaction'],
  { headings = [], except, findsTwins = false, frontMatter: usual }: DocumentFacts = {},
): Promise<Provider> {
  const { language, encodings, frontMatter = usual, readings = true, redact = 'off' } = options
  const languages = languagesOf(options, findsTwins)
  // Loaded where secrets are looked for: the detectors are much code.
  const redacting = redact === 'off' ? undefined : await import('../wrap/redacted.ts')
  const hidden = redacting === undefined ? {} : { ...(await redaction()), ...defined({ except }) }
  const limits = typeof readings === 'boolean' ? {} : readings
  const made = documents(provider, {
    ...defined({ language, encodings }),
    ...(frontMatter === undefined ? {} : { frontMatter: [frontMatter].flat() }),
    headings,
    ...defined({ languages }),
    readings: readings !== false && {
      ...defined({ maxBytes: limits.maxBytes, timeoutMs: limits.timeout }),
    },
    ...(redacting === undefined || redact === 'off'
      ? {}
      : { through: (whole) => redacting.redacted(whole, { ...hidden, mode: redact }) }),
  })
  // It parses front matter: loaded where there are skills.
  if (options.skills === undefined || options.skills === false) return made
  return (await import('../skills/index.ts')).describedSkills(made)
}

/**
 * The languages that documents are told apart by. None, where rules hide some paths: a document would name what not everybody may see.
 * Elsewhere than in files there are none either, unless the mount names
 * some: looking for twins takes a request for each.
 */
function languagesOf({ languages, access = [] }: DocumentOptions, findsTwins: boolean): readonly string[] | undefined {
  if (hidesPaths(access)) return []
  return languages ?? (findsTwins ? undefined : [])
}
