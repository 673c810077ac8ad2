import { resolve } from 'node:path'
import type { Command } from 'commander'
import { openLeftOutExplainer, servedFolderPath } from '../../config/open-mount.ts'
import { mountSource, type PlannedMount } from '../../config/plan.ts'
import { compileVerdict } from '../../core/access.ts'
import { contentLength } from '../../core/entry.ts'
import { isResourceError } from '../../core/errors.ts'
import type { Principal } from '../../core/provider.ts'
import { createResolver } from '../../core/router.ts'
import { defaultIndexedBytes } from '../../core/search-answer.ts'
import { formatUri, parseAddress } from '../../core/uri.ts'
import type { View } from '../../core/view.ts'
import { isTextOfUnknownEncoding } from '../../text/encoding/detect.ts'
import { type HookRecord, readHookRecords } from '../hosts/hook-records.ts'
import { cleanView } from '../operations/clean-view.ts'
import { explainLeftOut } from '../operations/left-out.ts'
import { openLocalCatalog, requireLocalSetUp } from '../operations/local.ts'
import { findNearMisses, formatRuleMiss } from '../operations/rule-globs.ts'
import { findPathInFolder, parseCount, splitNames, uriFromArgument } from '../operations/source.ts'
import { CommandError, commandFailure, exitCodes, helpExamples, usageError } from '../terminal/exit.ts'
import { formatSize, type Io, writeJson } from '../terminal/io.ts'
import { createTextLog } from '../terminal/log.ts'
import { coloursFor, createColumns, displayUri, escapeText } from '../terminal/text.ts'

interface WhyOptions {
  readonly as?: readonly string[]
  readonly config?: string
  /** Number of records; `true` means the last one. */
  readonly context?: number | true
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      `Tells why a file is served or left out, for each mount whose folder contains it: the line of a .gitignore file, a rule of the
configuration, a symbolic link that leads outside, a hard link, a name of files with secrets, an access rule, a format that the mount does not
read, an unknown encoding. Clients never get these reasons: to them the file looks missing.`,
    )
    .argument('[path]', 'a file or folder of this machine, or a URI')
    .option(
      '--as <roles>',
      'the roles of the caller, separated by commas; by default those of the configuration',
      (value: string) => splitNames(value),
    )
    .option('--config <file>', 'use this configuration; by default hikidashi.json here, else the current folder')
    .option(
      '--context [number]',
      'print instead the contexts that hooks added to the last prompts, and why; by default for the last prompt',
      parseCount,
    )
    .option('--json', 'print the answers as JSON')
    .addHelpText(
      ...helpExamples(`
  hikidashi why notes/draft.log
  hikidashi why file:///docs/plan.md --as guest --json
  hikidashi why --context 5`),
    )
    .action((path: string | undefined, options: WhyOptions) => answerWhy(path, options, io))
}

async function answerWhy(path: string | undefined, options: WhyOptions, io: Io) {
  if (options.context === undefined) {
    if (path === undefined) throw usageError('Name a file or a URI. To see the contexts that a hook added: --context.')
    return why(path, options, io)
  }
  const records = await readHookRecords(options.context === true ? 1 : options.context)
  if (options.json) return writeJson(io.out, { contexts: records })
  if (records.length === 0)
    throw commandFailure(
      'No hook has added a context to a prompt yet. To add a hook to a host: hikidashi add HOST --hook',
    )
  await io.out.write(records.map(formatHookRecord).join('\n'))
}

function formatHookRecord(record: HookRecord): string {
  const { time, host, folder, prompt, ms, from, tokens, score, silence, items } = record
  const head = `${time}  ${host}  ${escapeText(folder)}\n  “${escapeText(prompt)}”`
  const result = silence === undefined ? `${tokens} tokens` : `nothing: ${silence}`
  const facts = `  ${result}; score ${score}; ${ms} ms${from === undefined ? '' : `, from the ${from}`}`
  const rows = items.map((item) => [String(item.tokens), item.level, displayUri(item.uri), item.why])
  const heads = ['tokens', 'level', 'resource', 'why']
  const table = rows.length === 0 ? [] : [createColumns([0])([heads, ...rows]).trimEnd()]
  return `${[head, facts, ...table].join('\n')}\n`
}

interface PathCandidate {
  readonly planned: PlannedMount
  readonly path: string
  readonly uri: string
}

interface WhyReport {
  readonly mount: string
  readonly uri: string
  readonly served: boolean
  readonly reason: string
  readonly why: string
}

async function why(argument: string, options: WhyOptions, io: Io): Promise<void> {
  const local = await requireLocalSetUp(options.config === undefined ? {} : { config: options.config }, io)
  const mounts = (await local.complete?.()) ?? local.mounts
  const who: Principal = options.as === undefined ? local.principal : { id: 'why', roles: options.as }
  const candidates = candidatesOf(argument, mounts)
  if (candidates.length === 0)
    throw commandFailure(
      `${argument} is neither in a mount nor in the folder of one. To list the mounts: hikidashi status`,
    )
  const log = createTextLog(io, 'error')
  const catalog = await openLocalCatalog(local, log, io.secrets)
  const answers: WhyReport[] = []
  try {
    for (const candidate of candidates)
      answers.push(await answerFor(candidate, who, cleanView(catalog.view(who), io.secrets), mounts))
  } finally {
    await catalog.close()
  }
  if (options.json) await writeJson(io.out, { answers })
  else await io.out.write(answers.map((answer) => format(answer, io)).join(''), { isStyled: true })
  if (!answers.some(({ served }) => served)) throw new CommandError(exitCodes.notFound, 'No mount serves the file.')
}

function candidatesOf(argument: string, mounts: readonly PlannedMount[]): readonly PathCandidate[] {
  const asUri = uriFromArgument(argument, [])
  const isUri = asUri === argument
  if (isUri) {
    const resolvedUri = createResolver(mounts.map((planned) => ({ ...planned, planned })))(argument)
    return resolvedUri === undefined
      ? []
      : [{ planned: resolvedUri.mount.planned, path: resolvedUri.path, uri: argument }]
  }
  return mounts.flatMap((planned) => {
    const { config, address } = planned
    const root = servedFolderPath(planned)
    if (root === undefined) return []
    const below = findPathInFolder(root, resolve(argument))
    if (below === undefined) return []
    const slash = asUri.endsWith('/') && below !== '' ? '/' : ''
    const plain = `${below}${slash}`
    const path = `${mountSource(config).folder?.prefix ?? ''}${plain}`
    return [{ planned, path, uri: formatUri(parseAddress(address), path) }]
  })
}

async function answerFor(
  { planned, path, uri }: PathCandidate,
  who: Principal,
  view: View,
  mounts: readonly PlannedMount[],
): Promise<WhyReport> {
  const { address, config } = planned
  let listed = uri
  const answer = (isServed: boolean, reason: string, text: string): WhyReport => ({
    ...{ mount: address, uri: listed, served: isServed, reason },
    why: [text, ...findNearMisses(planned, path).map(formatRuleMiss)].join('; '),
  })
  const verdict = config.access === undefined ? undefined : compileVerdict(config.access)(who, path)
  const isFolder = path === '' || path.endsWith('/')
  if (verdict?.allowed === false && !isFolder) {
    const rule = verdict.rule === undefined ? undefined : config.access?.[verdict.rule]
    const explanation = `access rule ${(verdict.rule ?? 0) + 1} denies it: ${JSON.stringify(rule)}`
    return answer(false, 'access-rule', rule === undefined ? 'no access rule of the mount allows it' : explanation)
  }
  const explainer = await openLeftOutExplainer(planned)
  try {
    const omission = await explainer?.explain(path, new AbortController().signal)
    if (omission !== undefined) return answer(false, omission.reason, explainLeftOut(omission, path))
  } finally {
    explainer?.close()
  }
  try {
    if (isFolder) await view.directory({ uri })
    else {
      const [content] = (await view.read(uri)).contents
      listed = content?.uri ?? uri
      if (content !== undefined && 'bytes' in content && isTextOfUnknownEncoding(content.bytes, content.mimeType))
        return answer(true, 'encoding', 'served as bytes: its encoding is not known (name it in "encodings")')
      const part =
        content !== undefined && 'text' in content ? indexedPart(mounts, address, contentLength(content)) : ''
      if (part !== '') return answer(true, 'indexed-in-part', `served; ${part}`)
    }
  } catch (error) {
    if (!isResourceError(error)) throw error
    const { size } = error.detail
    const part = error.kind === 'too-large' && typeof size === 'number' ? indexedPart(mounts, address, size) : ''
    const also = part === '' ? '' : ` If it is text, ${part}.`
    if (error.kind !== 'not-found') return answer(true, error.kind, `served, but not read now: ${error.message}${also}`)
    return answer(false, 'provider', absenceWords(config))
  }
  return answer(true, 'served', 'served')
}

/**
 * Returns a phrase about the part of a text that searches index; empty if they index the whole, or if none covers the
 * mount.
 */
function indexedPart(mounts: readonly PlannedMount[], address: string, size: number | undefined): string {
  const own = parseAddress(address).text
  const limits = mounts.flatMap(({ config }) => {
    const { searches } = mountSource(config)
    const over = searches && config[searches.option]
    const isOver = over === '*' || (Array.isArray(over) && over.some((one) => parseAddress(String(one)).text === own))
    return isOver ? [searches?.indexedBytes(config) ?? defaultIndexedBytes] : []
  })
  const least = Math.min(...limits)
  if (size === undefined || size <= least) return ''
  return `only the first ${formatSize(least)} of its ${formatSize(size)} are searched ("maxBytes" of the search)`
}

function absenceWords(config: PlannedMount['config']): string {
  const { name, absence } = mountSource(config)
  return absence ?? `the provider "${name}" has no resource at this path`
}

function format({ mount, uri, served, why }: WhyReport, { out }: Io): string {
  const { green, yellow } = coloursFor(out.isTerminal)
  const sign = served ? green('served  ') : yellow('left out')
  const reason = why === 'served' ? '' : `          ${escapeText(why)}\n`
  return `${sign}  ${escapeText(uri || mount)}\n${reason}`
}
