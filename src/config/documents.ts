import { defined } from '../core/kit/defined.ts'
import type { Provider } from '../core/provider.ts'
import type { DocumentFacts, OpenContext } from '../providers/source.ts'
import type * as z from '../schema/builder.ts'
import type { documentsShape } from '../schema/documents.ts'
import type { MountOptions } from '../schema/mount.ts'
import { documents } from '../wrap/documents.ts'
import { hidesPaths } from './hidden-paths.ts'

type DocumentOptions = Partial<z.output<z.Members<typeof documentsShape>>> & Pick<MountOptions, 'access'>

/** Adds the document wrappers to a provider, as its mount configures them. */
export async function withDocuments(
  provider: Provider,
  options: DocumentOptions,
  redaction: OpenContext['redaction'],
  { headings = [], except, findsTwins = false, frontMatter: usual }: DocumentFacts = {},
): Promise<Provider> {
  const { language, encodings, frontMatter = usual, readings = true, redact = 'off' } = options
  const languages = languagesOf(options, findsTwins)
  // Loaded only with redaction, because the detectors are large.
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
  // Loaded only with skills, because it parses front matter.
  if (options.skills === undefined || options.skills === false) return made
  return (await import('../skills/index.ts')).describedSkills(made)
}

/**
 * The languages of documents. None if rules hide some paths, because a document would name hidden ones. Outside of files also
 * none by default, because looking for twins takes a request for each.
 */
function languagesOf({ languages, access = [] }: DocumentOptions, findsTwins: boolean): readonly string[] | undefined {
  if (hidesPaths(access)) return []
  return languages ?? (findsTwins ? undefined : [])
}
