import { type ErrorDetail, isResourceError } from '../core/errors.ts'
import { defined, isCount } from '../core/kit/object.ts'
import { metaKeys } from '../core/meta.ts'
import { isPath, parentOf } from '../core/path.ts'
import type { ByteRange, Content, Context, Entry } from '../core/provider.ts'
import { compileTemplate } from '../core/template.ts'
import { encodePath } from '../core/uri.ts'
import type { ListedEntries } from './listing.ts'
import { contentFaults, formatValue, type PromiseId, type ProviderRun, sample, summarizeError } from './run.ts'

interface CollectedContent {
  readonly content: Content
  readonly bytes: Buffer
}

type Failed = 'too-large' | 'damaged'

/** Expected content at a path. */
export interface ExpectedEntry {
  readonly text?: string
  readonly bytes?: Uint8Array
  readonly mimeType?: string
}

/** A byte order mark. A provider that removes it from a text returns three bytes fewer than are stored. */
const mark = Buffer.from('\ufeff')

/** Reads one listed entry, as a whole and in parts, and compares it with the listing and the expectation. */
export async function checkReading(run: ProviderRun, entry: Entry, expected: ExpectedEntry | undefined): Promise<void> {
  const { path, size } = entry
  if (size !== undefined && size > run.bounds.maxBytes && expected === undefined) return
  const wholes = await collectContents(run, path)
  if (wholes === 'too-large' || wholes === 'damaged') {
    if (expected !== undefined) run.fail('expected', `it is ${wholes}, and cannot be read`, path)
    return
  }
  if (wholes === undefined) return
  for (const { content } of wholes) for (const fault of contentFaults(content)) run.fail('metadata', fault, path)
  for (const whole of wholes) checkContent(run, path, whole)
  const own = wholes.find(({ content }) => content.path === undefined || content.path === path)
  if (own === undefined) return run.fail('read-content', 'none of its contents is of this path', path)
  checkListed(run, entry, own)
  if (expected !== undefined && !run.broken('metadata', 'read-size', 'read-text'))
    checkExpected(run, entry, own, expected)
  const partial = own.content.range !== undefined
  if (wholes.length === 1 && !partial && !run.broken('read-size')) await checkRanges(run, path, own)
}

function checkContent(run: ProviderRun, path: string, { content, bytes }: CollectedContent): void {
  if ('text' in content && !content.text.isWellFormed()) run.fail('read-text', 'it has a lone surrogate', path)
  if ('stream' in content && content.length !== bytes.length)
    run.fail('read-size', `its stream has ${bytes.length} bytes, and says ${formatValue(content.length)}`, path)
  const { size, range } = content
  const length = range === undefined ? bytes.length : undefined
  if (size !== undefined && isCount(size) && length !== undefined && !sameSize(size, content, length))
    run.fail('read-size', `it has ${length} bytes, and says ${size}`, path)
}

function checkListed(run: ProviderRun, entry: Entry, { content, bytes }: CollectedContent): void {
  const { path, size, version } = entry
  if (version !== undefined && content.version !== undefined && content.version !== version)
    run.fail('read-version', `listed ${formatValue(version)}, read ${formatValue(content.version)}`, path)
  // For a text in another encoding, the listed size is the size as stored.
  if (size === undefined || !isCount(size) || content.meta?.[metaKeys.encoding] !== undefined) return
  if (content.size !== undefined && content.size !== size)
    run.fail('read-size', `listed ${size}, and the content says ${content.size}`, path)
  if (content.range === undefined && !sameSize(size, content, bytes.length))
    run.fail('read-size', `listed ${size} bytes, read ${bytes.length}`, path)
}

function sameSize(size: number, content: Content, length: number): boolean {
  return size === length || ('text' in content && size === length + mark.length)
}

function checkExpected(
  run: ProviderRun,
  entry: Entry,
  { content, bytes }: CollectedContent,
  expected: ExpectedEntry,
): void {
  const { path } = entry
  const expectedContent = expected.bytes ?? expected.text
  if (expectedContent !== undefined && !bytes.equals(Buffer.from(expectedContent)))
    run.fail('expected', `it reads ${formatValue(bytes.toString().slice(0, 50))} (${bytes.length} bytes)`, path)
  if (expected.text !== undefined && !('text' in content)) run.fail('expected', 'it is not answered as text', path)
  const mimeType = content.mimeType ?? entry.mimeType
  if (expected.mimeType !== undefined && mimeType !== expected.mimeType)
    run.fail('expected', `its MIME type is ${formatValue(mimeType)}, not ${formatValue(expected.mimeType)}`, path)
}

async function checkRanges(run: ProviderRun, path: string, whole: CollectedContent): Promise<void> {
  const n = whole.bytes.length
  if (n < 2) return
  const middle = Math.floor(n / 2)
  const ranges: ByteRange[] = [{ start: 0, end: 1 }, { start: middle }, { start: n - 1, end: n + 1000 }]
  if (n > 2) ranges.push({ start: 1, end: n - 1 })
  const honoured = new Set<boolean>()
  for (const range of ranges) {
    const parts = await collectContents(run, path, range)
    const part = typeof parts === 'string' ? undefined : parts?.[0]
    if (part === undefined) return
    // A new version means that the content has changed, and parts cannot be compared.
    if (part.content.version !== whole.content.version) return
    honoured.add(part.content.range !== undefined)
    const fault = rangeFault(whole, part, range)
    if (fault !== undefined) return run.fail('read-range', `${formatValue(range)}: ${fault}`, path)
  }
  if (honoured.size > 1) run.fail('read-range', 'some ranges are honoured and some are not', path)
}

function rangeFault(
  whole: CollectedContent,
  { content, bytes }: CollectedContent,
  expectedRange: ByteRange,
): string | undefined {
  const { range } = content
  if (range === undefined)
    return bytes.equals(whole.bytes) ? undefined : 'it answered something that is neither the whole nor says which part'
  const { start, end } = range
  if (!isCount(start) || !isCount(end) || start > end) return `it says that it is the part ${formatValue(range)}`
  // The stored bytes can begin with a byte order mark that the whole text lacks.
  const representations = 'text' in whole.content ? [whole.bytes, Buffer.concat([mark, whole.bytes])] : [whole.bytes]
  if (!representations.some((all) => end <= all.length && bytes.equals(all.subarray(start, end))))
    return `it answered with the part ${formatValue(range)}, but its bytes are not those of that part`
  // Text may be cut between characters only, and a character takes up to four bytes.
  const slack = 'text' in whole.content ? 3 : 0
  const last = Math.min(expectedRange.end ?? Number.POSITIVE_INFINITY, whole.bytes.length)
  if (Math.abs(start - expectedRange.start) > slack || Math.abs(end - last) > slack)
    return `it answered the part ${formatValue(range)} instead`
  return undefined
}

/**
 * Accepts the errors `too-large`, and `invalid` for a damaged resource (with the line), or for one that is archived or
 * encrypted (reason `withheld`). Another failure is recorded as a problem.
 */
async function collectContents(
  run: ProviderRun,
  path: string,
  range?: ByteRange,
): Promise<readonly CollectedContent[] | Failed | undefined> {
  const promise = range === undefined ? 'read-content' : 'read-range'
  const outcome = await run.call(path, async (context) => {
    const request = { path, params: new Map<string, string>(), ...defined({ range }) }
    const contents: unknown = await run.provider.read(request, context)
    if (!Array.isArray(contents)) return formatValue(contents)
    const wholes: CollectedContent[] = []
    for (const content of contents as readonly Content[])
      wholes.push({ content, bytes: await readContentBytes(content, run.bounds.maxBytes, context) })
    return wholes
  })
  if (outcome === undefined) return undefined
  if ('error' in outcome) {
    const { error } = outcome
    if (isResourceError(error)) {
      if (error.kind === 'too-large') return 'too-large'
      if (error.kind === 'invalid' && (error.detail.line !== undefined || isSealed(error.detail))) return 'damaged'
    }
    run.fail(promise, `it threw ${summarizeError(error)}`, path)
    return undefined
  }
  if (typeof outcome.value === 'string') {
    run.fail(promise, `it answered ${outcome.value} instead of an array of contents`, path)
    return undefined
  }
  if (outcome.value.length > 0) return outcome.value
  run.fail(promise, 'it answered no content', path)
  return undefined
}

const isSealed = ({ reason }: ErrorDetail) => reason === 'withheld'

async function readContentBytes(content: Content, limit: number, { signal }: Context): Promise<Buffer> {
  if ('text' in content) return Buffer.from(content.text)
  if ('bytes' in content) return Buffer.from(content.bytes)
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of content.stream) {
    signal.throwIfAborted()
    chunks.push(chunk)
    length += chunk.length
    // An endless stream is reported as a wrong length.
    if (length > Math.max(limit, content.length)) break
  }
  return Buffer.concat(chunks)
}

/**
 * Requests paths without an entry: variations of listed paths, names that programs often mishandle, and those that the
 * expectation calls missing.
 */
export async function checkMissing(
  run: ProviderRun,
  listedEntries: ListedEntries,
  expected: readonly string[],
): Promise<void> {
  const few = Math.ceil(run.bounds.samples / 3)
  const entries = sample(listedEntries.entries, few)
  const names = new Set(['hikidashi-no-such-entry', '__proto__', 'constructor', 'toString', 'x'.repeat(5000)])
  for (const { path } of entries)
    names
      .add(`${path}x`)
      .add(`${path}/`)
      .add(`${path}/x`)
      .add(`${parentOf(path)}hikidashi-no-such-directory/`)
  for (const directory of sample(listedEntries.directories, few)) names.add(directory.slice(0, -1))
  const isAbsent = await absence(run, listedEntries)
  for (const path of new Set([...[...names].filter(isAbsent), ...expected])) await checkAbsent(run, path)
  if (!run.broken('read-missing', 'stat-missing', 'list-prefix', 'list-nothing'))
    await checkSpelling(run, listedEntries, isAbsent)
}

/** Returns a test whether a path must have no entry: it is not listed, and matches no template. */
async function absence(run: ProviderRun, entries: ListedEntries): Promise<(path: string) => boolean> {
  const paths = new Set([...entries.entries.map((entry) => entry.path), ...entries.directories])
  const outcome = await run.call(undefined, async (context) => (await run.provider.templates?.(context)) ?? [])
  // `checkTemplates` reports an answer that is not an array.
  const templates = outcome !== undefined && 'value' in outcome && Array.isArray(outcome.value) ? outcome.value : []
  const patterns = templates
    .map(({ template }) => template)
    // A template that is only `{+path}` matches any path, and says nothing about entries.
    .filter((template) => !/^\{\+\w+\}$/.test(template))
    .flatMap((template) => {
      try {
        return [compileTemplate(template)]
      } catch {
        // `checkTemplates` reports templates that do not compile.
        return []
      }
    })
  return (path) =>
    isPath(path) && !paths.has(path) && !patterns.some((pattern) => pattern.match(encodePath(path)) !== undefined)
}

async function checkAbsent(run: ProviderRun, path: string, promise?: PromiseId): Promise<void> {
  const { provider } = run
  if (provider.stat !== undefined) {
    const outcome = await run.call(path, async (context) => provider.stat?.(path, context))
    judge(promise ?? 'stat-missing', outcome, (entry) => `stat answered ${formatValue(entry)}`)
  }
  const outcome = await run.call(path, (context) => provider.read({ path, params: new Map() }, context))
  judge(promise ?? 'read-missing', outcome, (contents) =>
    Array.isArray(contents) ? `read answered ${contents.length} contents` : `read answered ${formatValue(contents)}`,
  )

  function judge<T>(id: PromiseId, result: Awaited<ReturnType<typeof run.call<T>>>, words: (value: T) => string) {
    if (result === undefined) return
    if ('value' in result) run.fail(id, words(result.value), path)
    else if (result.error.kind !== 'not-found') run.fail(id, `it threw ${summarizeError(result.error)}`, path)
  }
}

/**
 * Requests listed paths, and directories of them, in another case and Unicode normalization. Nothing may be found
 * there.
 */
async function checkSpelling(
  run: ProviderRun,
  entries: ListedEntries,
  isAbsent: (path: string) => boolean,
): Promise<void> {
  const few = Math.ceil(run.bounds.samples / 3)
  const spellingsOf = (path: string) => [path.normalize('NFC'), path.normalize('NFD'), swapCase(path)]
  // Few paths may have a spelling that changes with the normalization, so they are sampled separately.
  const telling = entries.entries.filter((entry) => entry.path.normalize('NFC') !== entry.path.normalize('NFD'))
  for (const { path } of [...sample(telling, few), ...sample(entries.entries, few)])
    for (const other of spellingsOf(path)) if (isAbsent(other)) await checkAbsent(run, other, 'spelling')
  for (const directory of sample(entries.directories, few))
    for (const prefix of spellingsOf(directory)) {
      if (entries.entries.some((entry) => entry.path.startsWith(prefix))) continue
      await run.walk('spelling', { prefix }, (entry) => {
        run.fail('spelling', `a listing below ${formatValue(prefix)} yielded it`, entry.path)
        return false
      })
    }
}

/** Of ASCII letters. */
function swapCase(path: string): string {
  return path.replace(/[a-zA-Z]/g, (letter) => (letter < 'a' ? letter.toLowerCase() : letter.toUpperCase()))
}

/** `stat` may report more facts than the listing, but no different ones. */
export async function checkStat(run: ProviderRun, entry: Entry): Promise<void> {
  const { provider } = run
  if (provider.stat === undefined) return
  const { path } = entry
  const outcome = await run.call(path, async (context: Context) => provider.stat?.(path, context))
  if (outcome === undefined) return
  if ('error' in outcome) return run.fail('stat-same', `it threw ${summarizeError(outcome.error)}`, path)
  const value = outcome.value
  if (value?.path !== path) return run.fail('stat-same', `it returned the path ${formatValue(value?.path)}`, path)
  for (const fact of ['size', 'modified', 'version', 'mimeType'] as const)
    if (entry[fact] !== undefined && !Object.is(value[fact], entry[fact]))
      run.fail('stat-same', `${fact}: listed ${formatValue(entry[fact])}, stat says ${formatValue(value[fact])}`, path)
}
