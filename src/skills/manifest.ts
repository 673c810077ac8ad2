import { createHash } from 'node:crypto'
import { type Document, isNode, parseDocument, visit } from 'yaml'
import { isResourceError, ResourceError } from '../core/errors.ts'
import { iteratePages } from '../core/kit/groups.ts'
import { createLruCache } from '../core/kit/lru.ts'
import { defined } from '../core/kit/object.ts'
import { directoryMimeType, type Resource, type Skill, type SkillFile, type View } from '../core/view.ts'
import { deepNestingIn, splitFrontMatter } from '../text/front-matter.ts'
import { readContentBytes } from '../wrap/part.ts'

/** Maximum number of files and bytes of one skill (SEP-2640). A larger directory is not served as a skill. */
export const skillLimits = { files: 512, bytes: 16 * 1024 * 1024 } as const

const walkLimits = { directories: 2000, files: 50_000, depth: 16 } as const

export interface DigestCache {
  of(file: Resource, view: View, signal: AbortSignal | undefined): Promise<Read | undefined>
}

interface Read extends SkillFile {
  /** The text of the file, if it is a `SKILL.md`. */
  readonly text?: string
}

/** Creates a cache of digests. A file without a version is read each time. */
export function createDigests(): DigestCache {
  const cache = createLruCache<Read>(16 * 1024 * 1024, ({ uri, text = '' }) => 200 + uri.length + text.length)
  return {
    of: async (file, view, signal) => {
      const key = file.version === undefined ? undefined : `${file.version} ${file.uri}`
      const cachedRead = key === undefined ? undefined : cache.get(key)
      if (cachedRead !== undefined) return cachedRead
      const read = await readOne(file.uri, view, signal)
      // A different version means that the file has changed since it was listed.
      const isListed = read?.version === undefined || read.version === file.version
      if (read !== undefined && key !== undefined && isListed) cache.set(key, read.file)
      return read?.file
    },
  }
}

/** Reads one file, and returns its digest and size as a client computes them. Undefined when it no longer exists, or has several contents. */
async function readOne(uri: string, view: View, signal: AbortSignal | undefined) {
  try {
    const { contents } = await view.read(uri, defined({ signal }))
    const [content, ...others] = contents
    if (content === undefined || others.length > 0) return undefined
    const text = 'text' in content ? content.text.toWellFormed() : undefined
    const bytes = text === undefined ? await readContentBytes(content) : Buffer.from(text)
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
    const isHead = text !== undefined && uri.endsWith(`/${skillFileName}`)
    const file: Read = { uri, digest, size: bytes.length, ...(isHead ? { text } : {}) }
    return { file, version: content.version }
  } catch (error) {
    if (isResourceError(error, 'not-found')) return undefined
    throw error
  }
}

/**
 * Returns the files below a directory that the view shows.
 *
 * @throws ResourceError `too-large` beyond 2,000 directories, 50,000 files or a depth of 16.
 */
export async function filesBelow(root: string, view: View, signal: AbortSignal | undefined): Promise<Resource[]> {
  const options = signal === undefined ? {} : { signal }
  const files: Resource[] = []
  const waiting: { readonly uri: string; readonly depth: number }[] = [{ uri: root, depth: 0 }]
  let directories = 0
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    directories++
    const { uri, depth } = next
    for await (const { items } of iteratePages((query) => view.directory({ uri, ...query }, options))) {
      signal?.throwIfAborted()
      for (const one of items)
        if (one.mimeType !== directoryMimeType) files.push(one)
        else waiting.push({ uri: one.uri, depth: depth + 1 })
      const isTooLarge = directories + waiting.length > walkLimits.directories || files.length > walkLimits.files
      if (isTooLarge || waiting.some(({ depth }) => depth > walkLimits.depth))
        throw new ResourceError(
          'too-large',
          'there are too many directories or files, or too deep ones, to look for skills in',
          {
            ...walkLimits,
          },
        )
    }
  }
  return files
}

export const directoryOf = (uri: string) => uri.slice(0, -(skillFileName.length + 1))

/**
 * Returns the skill of a `SKILL.md`, with the files below its directory, or the reason why it is not a valid skill.
 *
 * @param files The files of the directory, and possibly others.
 */
export async function skillAt(
  uri: string,
  files: readonly Resource[],
  view: View,
  digests: DigestCache,
  signal: AbortSignal | undefined,
): Promise<Skill | { readonly fault: string }> {
  const directory = directoryOf(uri)
  const own = files.filter((file) => file.uri.startsWith(`${directory}/`))
  if (own.length > skillLimits.files) return { fault: `it has more than ${skillLimits.files} files` }
  const tooLarge = { fault: `its files have more than ${skillLimits.bytes} bytes together` }
  if (own.reduce((sum, { size = 0 }) => sum + size, 0) > 2 * skillLimits.bytes) return tooLarge
  const resources: SkillFile[] = []
  let text: string | undefined
  let bytes = 0
  for (const file of own) {
    const digest = await digests.of(file, view, signal).catch((error: unknown) => {
      if (isResourceError(error, 'too-large') || isResourceError(error, 'invalid')) return 'unreadable'
      throw error
    })
    if (digest === undefined) continue
    if (typeof digest === 'string') return { fault: 'one of its files cannot be read' }
    bytes += digest.size
    if (bytes > skillLimits.bytes) return tooLarge
    resources.push({ uri: digest.uri, digest: digest.digest, size: digest.size })
    if (digest.uri === uri) text = digest.text
  }
  if (text === undefined) return { fault: `its ${skillFileName} is not text` }
  const name = decodeURIComponent(directory.slice(directory.lastIndexOf('/') + 1))
  const header = readSkillHeader(text, name)
  if ('fault' in header) return header
  return { uri, frontmatter: header.frontmatter, resources }
}

export const skillFileName = 'SKILL.md'

interface SkillHeader {
  readonly name: string
  readonly description: string
  /** All members, including `name` and `description`. */
  readonly frontmatter: Readonly<Record<string, unknown>>
}

/** Maximum length of front matter, in characters. */
const maxHeader = 32_768
/** Maximum nesting depth of front matter. */
const maxNesting = 200
/** Maximum length of a description and of a note on compatibility (Agent Skills specification), in characters. */
const [maxDescription, maxCompatibility] = [1024, 500]

/** The names of skills (Agent Skills specification): at most 64 lower-case letters, digits and single hyphens. */
const nameForm = /^(?!.*--)[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/

/**
 * Reads the front matter of a `SKILL.md`, by the core schema of YAML 1.2.
 *
 * @param directory The name of the directory that the file is in, which has to be the name of the skill.
 */
export function readSkillHeader(text: string, directory: string): SkillHeader | { readonly fault: string } {
  const { head } = splitFrontMatter(text)
  if (head === undefined) return { fault: 'it does not begin with front matter between two lines of ---' }
  if (head.length > maxHeader) return { fault: `its front matter is longer than ${maxHeader} characters` }
  const frontmatter = parseHead(head)
  if (frontmatter === undefined)
    return { fault: 'its front matter is not plain YAML without tags and aliases, or is nested too deeply' }
  if (!isPlain(frontmatter, 0) || typeof frontmatter !== 'object' || frontmatter === null || Array.isArray(frontmatter))
    return { fault: 'its front matter cannot be written as JSON, or is nested more than 32 deep' }
  const { name, description, compatibility, metadata } = frontmatter as Readonly<Record<string, unknown>>
  if (typeof name !== 'string' || !nameForm.test(name))
    return { fault: 'its name is missing, or is not one to 64 lower-case letters, digits and single hyphens' }
  if (name !== directory) return { fault: 'its name differs from the name of its directory' }
  if (typeof description !== 'string' || description.trim() === '') return { fault: 'it has no description' }
  if (lengthOf(description) > maxDescription)
    return { fault: `its description is longer than ${maxDescription} characters` }
  if (compatibility !== undefined && !isShortText(compatibility, maxCompatibility))
    return { fault: `its "compatibility" is not a string of at most ${maxCompatibility} characters` }
  if (metadata !== undefined && !isTexts(metadata)) return { fault: 'its "metadata" has values that are not strings' }
  return { name, description, frontmatter: frontmatter as Readonly<Record<string, unknown>> }
}

/** Parses front matter as YAML. Undefined when it is faulty, has tags or aliases, or is nested too deeply. */
function parseHead(head: string): unknown {
  if (deepNestingIn(head, maxNesting) !== undefined) return undefined
  try {
    const document = parseDocument(head, { schema: 'core', version: '1.2', uniqueKeys: true, stringKeys: true })
    if (document.errors.length > 0 || document.warnings.length > 0 || hasTags(document)) return undefined
    return document.toJS({ maxAliasCount: 0 })
  } catch {
    return undefined
  }
}

const lengthOf = (text: string) => Array.from(text).length

const isShortText = (value: unknown, most: number) =>
  typeof value === 'string' && value !== '' && lengthOf(value) <= most

const isTexts = (value: unknown) =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((item) => typeof item === 'string')

/** Whether any value has an explicit type tag. YAML parsers interpret tags differently. */
function hasTags(document: Document): boolean {
  let isFound = false
  visit(document, (_key, node) => {
    isFound ||= isNode(node) && node.tag !== undefined
    return isFound ? visit.BREAK : undefined
  })
  return isFound
}

/** Whether a value remains the same when it is written as JSON and parsed again. */
function isPlain(value: unknown, depth: number): boolean {
  if (depth > 32) return false
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value === 'string') return value.isWellFormed()
  if (typeof value !== 'object' || value === null) return typeof value === 'boolean' || value === null
  if (Array.isArray(value)) return value.every((item) => isPlain(item, depth + 1))
  return Object.entries(value).every(([key, member]) => key !== '__proto__' && isPlain(member, depth + 1))
}
