import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { openBody, type ResourceBody } from '../../core/body.ts'
import { base64Of, contentLength } from '../../core/entry.ts'
import { isResourceError, type ResourceError } from '../../core/errors.ts'
import { directoryMimeType, type ResourceContent, type View } from '../../core/view.ts'
import { cleanStream } from '../operations/clean-view.ts'
import { addSourceOptions, parseCount, type SourceOptions, withSource, withSuggestion } from '../operations/source.ts'
import { CommandError, commandFailure, exitCodes, helpExamples, usageError } from '../terminal/exit.ts'
import { createOutput, formatSize, type Io, ioError, type Output } from '../terminal/io.ts'
import { createProgress } from '../terminal/progress.ts'
import { displayUri, escapeText } from '../terminal/text.ts'

interface ReadOptions extends SourceOptions {
  readonly json?: true
  readonly output?: string
  readonly lines?: string
  readonly bytes?: string
  readonly tail?: number
  readonly as?: 'text' | 'markdown'
}

export function define(command: Command, io: Io): void {
  command
    .description(
      'Prints the content of a URI: a text in UTF-8, and other content as its bytes. For a directory, with a slash at its end, it prints the listing. Several contents follow each other, each announced on stderr.',
    )
    .argument('<uri>', 'a resource: its URI, or a path of this machine')
    .option('-o, --output <file>', 'write the content to a file, if there is only one')
    .addOption(
      new Option('--lines <from-to>', 'only these lines: the first is 1, and both ends are included')
        .argParser(parseRange)
        .conflicts('bytes'),
    )
    .addOption(
      new Option('--bytes <from-to>', 'only these bytes: the first is 0, and both ends are included')
        .argParser(parseRange)
        .conflicts('lines'),
    )
    .addOption(
      new Option('--tail <lines>', 'only this many lines at the end')
        .argParser(parseCount)
        .conflicts(['lines', 'bytes', 'as']),
    )
    .addOption(
      new Option(
        '--as <form>',
        'print a PDF, Office or HTML document as text, or with its headings and tables',
      ).choices(['text', 'markdown']),
    )
    .addOption(new Option('--json', 'print the contents with their metadata; bytes in base64').conflicts('output'))
  addSourceOptions(command)
    .addHelpText(
      ...helpExamples(`
  hikidashi read README.md                              a file here
  hikidashi read file:///docs/manual.md --lines 10-40
  hikidashi read logs/server.log --tail 50
  hikidashi read report.docx --as markdown -o report.md
  hikidashi read file:///docs/                          the listing of a directory
  hikidashi read file:///docs/logo.png -o logo.png --url http://127.0.0.1:8787/mcp`),
    )
    .action((uri: string, options: ReadOptions) => runReadCommand(uri, options, io))
}

function parseRange(value: string): string {
  if (!/^\d+(?:-\d*)?$/.test(value)) throw new InvalidArgumentError('Write FROM-TO, FROM- or one number.')
  return value
}

async function runReadCommand(argument: string, options: ReadOptions, io: Io): Promise<void> {
  await withSource(options, io, async ({ view, uriOf }) => {
    const uri = withPart(uriOf(argument), options)
    const progress = createProgress(io, { what: `Reading ${displayUri(uri)}`, besideOutput: true })
    const reading = view.read(uri).finally(progress.end)
    const result = await withSuggestion(uri, reading, view).catch((error: unknown) => {
      if (!isResourceError(error, 'too-large') || error.detail.reason === 'withheld') throw error
      return error
    })
    if (isResourceError(result)) return readLarge(uri, result, { view, options, io })
    const { contents } = result
    if (options.json) return writeContentsJson(io.out, uri, contents)
    if (options.output !== undefined) return writeFile(options.output, contents, io)
    for (const content of contents) {
      if (contents.length > 1) io.say(headerOf(content))
      if (io.out.isTerminal && !('text' in content))
        throw commandFailure(
          `${content.uri} is not text (${describeContent(content)}). To keep it: --output FILE. To see it as base64: --json.`,
        )
      await writeContent(io.out, content, io)
      if ((contents.length > 1 || io.out.isTerminal) && needsLineEnd(content)) await io.out.write('\n')
    }
  })
}

async function readLarge(
  uri: string,
  error: ResourceError,
  { view, options, io }: { readonly view: View; readonly options: ReadOptions; readonly io: Io },
): Promise<void> {
  const isPart = uri.includes('?')
  if (isPart || options.json || (options.output === undefined && io.out.isTerminal))
    throw new CommandError(
      exitCodes.failed,
      `${error.message}\nTo read a part of it: --lines 1-200, --tail 200, or --bytes 0-65535.${isPart ? '' : ' To keep all of it: --output FILE.'}`,
    )
  const whole = await openWhole(view, uri, error, options.url)
  const isLocal = options.url === undefined && options.command === undefined
  // A secret may lie across the border of two parts, so the whole stream is cleaned.
  const bytes = isLocal ? cleanStream(whole.bytes, io.secrets) : whole.bytes
  const write = (out: Output) =>
    writeWithProgress(out, whole.length, io, async (output) => {
      for await (const piece of bytes) await output.write(piece)
    })
  await (options.output === undefined ? write(io.out) : toFile(options.output, write))
}

/** The queries are described in docs/providers/documents.md. */
function withPart(uri: string, { lines, bytes, tail, as }: ReadOptions): string {
  const partOptions = Object.entries({ as, lines, bytes, tail }).filter(([, value]) => value !== undefined)
  if (partOptions.length === 0) return uri
  if (uri.includes('?'))
    throw usageError('The URI has a query already. Write the part into the query, or leave the query out.')
  return `${uri}?${partOptions.map(([name, value]) => `${name}=${value}`).join('&')}`
}

/** @param total Length of the data in bytes; `undefined` if it is not known. */
async function writeWithProgress(
  out: Output,
  total: number | undefined,
  { saysToTerminal }: Io,
  write: (output: Output) => Promise<void>,
): Promise<void> {
  const progress = createProgress({ saysToTerminal, out }, { done: 0, total, what: '', format: formatSize })
  const output: Output = {
    ...out,
    write: async (data, writing) => {
      await out.write(data, writing)
      progress.add(Buffer.byteLength(data))
    },
  }
  await write(output).finally(progress.end)
}

async function writeFile(file: string, contents: readonly ResourceContent[], io: Io): Promise<void> {
  const [content] = contents
  if (content === undefined || contents.length > 1)
    throw commandFailure(
      `The resource has ${contents.length} contents, and --output takes only one. Print them with --json.`,
    )
  await toFile(file, (out) => writeContent(out, content, io))
}

async function toFile(file: string, write: (out: Output) => Promise<void>): Promise<void> {
  const stream = createWriteStream(file)
  try {
    await write({ ...createOutput(stream), isTerminal: false })
    stream.end()
    await finished(stream)
  } catch (error) {
    stream.destroy()
    if (isResourceError(error)) throw error
    throw ioError('written', `The file ${file}`, error)
  }
}

function headerOf(content: ResourceContent): string {
  return escapeText(`──  ${content.uri}  ${describeContent(content)}`)
}

function describeContent(content: ResourceContent): string {
  const length = contentLength(content)
  const whole = content.size !== undefined && content.size > length ? ` of ${formatSize(content.size)}` : ''
  const size = content.mimeType === directoryMimeType ? [] : [formatSize(length) + whole]
  return [content.mimeType ?? 'unknown type', ...size].join(', ')
}

function needsLineEnd(content: ResourceContent): boolean {
  return 'text' in content && content.text !== '' && !content.text.endsWith('\n')
}

function writeContent(out: Output, content: ResourceContent, io: Io): Promise<void> {
  return writeWithProgress(out, contentLength(content), io, async (output) => {
    if ('text' in content) await output.write(content.text)
    else if ('bytes' in content) await output.write(content.bytes)
    else for await (const chunk of content.stream) await output.write(chunk)
  })
}

/** Writes `{ "uri": …, "contents": [{ "uri": …, "text" or "blob" (base64): … }] }`. */
async function writeContentsJson(out: Output, uri: string, contents: readonly ResourceContent[]): Promise<void> {
  await out.write(`{\n"uri": ${JSON.stringify(uri)},\n"contents": [`)
  for (const [i, content] of contents.entries()) {
    await out.write(i === 0 ? '\n' : ',\n')
    await writeContentJson(out, content)
  }
  await out.write(contents.length === 0 ? ']\n}\n' : '\n]\n}\n')
}

async function writeContentJson(out: Output, content: ResourceContent): Promise<void> {
  if ('text' in content) {
    const { text, ...facts } = content
    return out.write(JSON.stringify({ ...facts, text }))
  }
  if ('bytes' in content) {
    const { bytes, ...facts } = content
    return out.write(JSON.stringify({ ...facts, blob: base64Of(bytes) }))
  }
  const { stream, length: _, ...facts } = content
  await out.write(`${JSON.stringify(facts).slice(0, -1)},"blob":"`)
  // Three bytes make four characters of base64, so the remaining bytes go in front of the next chunk.
  let rest: Uint8Array = new Uint8Array()
  for await (const chunk of stream) {
    const bytes = Buffer.concat([rest, chunk])
    const whole = bytes.length - (bytes.length % 3)
    rest = bytes.subarray(whole)
    await out.write(base64Of(bytes.subarray(0, whole)))
  }
  await out.write(`${base64Of(rest)}"}`)
}

type ContentStream = Pick<ResourceBody, 'length'> & { readonly bytes: AsyncIterable<Uint8Array> }

/**
 * Opens a content by the link in the error, if the server at `url` gave one that works, otherwise in parts.
 * @throws `error` if the resource cannot be read in parts
 */
async function openWhole(
  view: View,
  uri: string,
  error: ResourceError,
  url: string | undefined,
): Promise<ContentStream> {
  if (url !== undefined) {
    const { contentLinkOf } = await import('../../client/errors.ts')
    const link = contentLinkOf(error, url)
    const linked = link === undefined ? undefined : await openLink(link)
    if (linked !== undefined) return linked
  }
  const body = await openBody((part, options) => view.read(part, options), uri, {}, error)
  return { length: body.length, bytes: body.bytes() }
}

async function openLink(link: URL): Promise<ContentStream | undefined> {
  const response = await fetch(link, { redirect: 'error' }).catch(() => undefined)
  if (response === undefined || !response.ok || response.body === null) {
    await response?.body?.cancel()
    return undefined
  }
  const length = response.headers.get('content-length')
  return { length: length === null ? undefined : Number(length), bytes: response.body }
}
