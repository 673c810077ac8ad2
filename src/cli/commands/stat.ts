import type { Command } from 'commander'
import { defined } from '../../core/kit/object.ts'
import { addSourceOptions, nothingAt, type SourceOptions, withSource } from '../operations/source.ts'
import { type Facts, findFacts } from '../operations/stat-find.ts'
import { exitCodeHelp } from '../terminal/exit.ts'
import { counted, formatSize, formatTime, type Io, resourceToJson, writeJson } from '../terminal/io.ts'
import { createProgress } from '../terminal/progress.ts'
import { coloursFor, escapeText, readableUri } from '../terminal/text.ts'

interface StatOptions extends SourceOptions {
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      `Prints the metadata of a resource or a directory: name, title, size, type, times, annotations, its mount, whether it can be
watched, and the templates that match it. It looks in the listing of the directory, and reads the resource only if it is not
listed.`,
    )
    .argument('<uri>', 'a resource or a directory: its URI, or a path of this machine')
    .option('--json', 'print the metadata as JSON')
  addSourceOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  hikidashi stat README.md                              a file here
  hikidashi stat file:///docs/                          a directory
  hikidashi stat file:///docs/manual.md --json --url http://127.0.0.1:8787/mcp
${exitCodeHelp}`,
    )
    .action((uri: string, options: StatOptions) => stat(uri, options, io))
}

async function stat(argument: string, options: StatOptions, io: Io): Promise<void> {
  await withSource(options, io, async ({ view, uriOf }) => {
    const uri = uriOf(argument)
    const progress = createProgress(io, { what: 'Looking for it in its directory', besideOutput: true })
    const facts = await findFacts(view, uri).finally(progress.end)
    if (facts === undefined) throw await nothingAt(uri, view)
    await (options.json ? writeJson(io.out, toJson(facts)) : io.out.write(format(facts, io), { isStyled: true }))
  })
}

function toJson({ resource, mount, children, ...facts }: Facts) {
  return {
    ...resourceToJson(resource),
    ...(mount === undefined ? {} : { mount: mount.uri }),
    ...defined({ children }),
    ...facts,
  }
}

function format({ resource, mount, children, listed, watchable, templates }: Facts, { out }: Io): string {
  const { uri, name, title, description, mimeType, size, modified, version, priority, audience, icons, meta } = resource
  const isDirectory = children !== undefined
  const shownUri = (text: string) => escapeText(out.isTerminal ? readableUri(text) : text)
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['uri', shownUri(uri)],
    ['name', escapeText(name)],
    ['title', textOf(title)],
    ['description', textOf(description)],
    ['type', textOf(mimeType)],
    ['children', children === undefined ? undefined : formatChildren(children)],
    ['size', size === undefined ? undefined : formatBytes(size)],
    ['modified', modified === undefined ? undefined : `${formatTime(modified)}  (${formatAge(Date.now() - modified)})`],
    ['version', textOf(version)],
    ['priority', priority === undefined ? undefined : formatPriority(priority)],
    ['audience', audience === undefined ? undefined : audience.join(', ')],
    ['icons', icons === undefined ? undefined : escapeText(icons.map(({ src }) => src).join(', '))],
    ['mount', mount === undefined ? undefined : [shownUri(mount.uri), textOf(mount.title)].filter(Boolean).join('  ')],
    ['listed', isDirectory ? undefined : listed ? 'yes' : 'no: it is read by its URI, or by a template'],
    ['watchable', watchable ? 'yes: hikidashi watch tells of its changes' : 'no: nothing tells of its changes'],
    ...templates.map(({ uriTemplate, name: called, values }, i): readonly [string, string] => [
      i === 0 ? 'templates' : '',
      escapeText(`${uriTemplate}  (${called})${formatValues(values)}`),
    ]),
    ...Object.entries(meta ?? {}).map(([key, value], i): readonly [string, string] => [
      i === 0 ? '_meta' : '',
      escapeText(`${key}: ${JSON.stringify(value)}`),
    ]),
  ]
  const { bold } = coloursFor(out.isTerminal)
  return rows.flatMap(([key, value]) => (value === undefined ? [] : [`${bold(key.padEnd(11))}  ${value}\n`])).join('')
}

function textOf(text: string | undefined): string | undefined {
  return text === undefined ? undefined : escapeText(text)
}

function formatChildren({ directories, resources, complete }: NonNullable<Facts['children']>): string {
  const most = complete ? '' : ', and more'
  return `${counted(resources, 'resource')} and ${counted(directories, 'directory', 'directories')}${most}`
}

function formatBytes(size: number): string {
  const bytes = `${size.toLocaleString('en')} bytes`
  return size < 1024 ? bytes : `${formatSize(size)}  (${bytes})`
}

function formatPriority(priority: number): string {
  const word = priority === 1 ? '  (required)' : priority === 0 ? '  (entirely optional)' : ''
  return `${priority}${word}`
}

function formatValues(values: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(values).map(([name, value]) => `${name}=${value}`)
  return pairs.length === 0 ? '' : `: ${pairs.join(', ')}`
}

const spans = [
  [86_400_000 * 365, 'year'],
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
] as const

/** How long ago something was: `3 days ago`. */
export function formatAge(milliseconds: number): string {
  if (milliseconds < -60_000) return 'in the future, by the clock here'
  for (const [span, word] of spans) {
    const number = Math.floor(milliseconds / span)
    if (number > 0) return `${number} ${word}${number === 1 ? '' : 's'} ago`
  }
  return 'just now'
}
