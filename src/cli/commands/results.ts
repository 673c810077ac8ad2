import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { openCatalog } from '../../config/build.ts'
import { mountSource } from '../../config/plan.ts'
import { isWritable, type WritableMount } from '../../config/writing.ts'
import { errorCodeOf, isResourceError } from '../../core/errors.ts'
import { defined, jsonIn } from '../../core/kit/object.ts'
import { formatUri, parseAddress } from '../../core/uri.ts'
import type { StoreOutcome } from '../../providers/results/index.ts'
import { type LocalSetUp, requireLocalSetUp } from '../operations/local.ts'
import { commandFailure, helpExamples, rethrowAsFailure, usageError } from '../terminal/exit.ts'
import { formatCount, type Io, writeJson } from '../terminal/io.ts'
import { createTextLog } from '../terminal/log.ts'
import { createColumns, escapeText } from '../terminal/text.ts'

interface PutOptions {
  readonly config?: string
  readonly mount?: string
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      'Stores results of analyses, in which several language models answer one question, in a results mount.',
    )
    .addHelpText(
      ...helpExamples(`
  hikidashi results put analysis.json
  hikidashi results put results.jsonl --mount wallbounce://project
  analyse | hikidashi results put -`),
    )
  command
    .command('put')
    .description(
      `Stores the analyses of a file: one analysis or an array of them in JSON, or one on each line (JSON Lines). All of them are
checked before the first is stored. Storing the same analysis again changes at most its tags and times. A running server tells its clients.`,
    )
    .argument('<file>', 'the file of analyses; - is stdin')
    .option('--config <file>', 'the configuration; by default hikidashi.json here')
    .option('--mount <address>', 'the mount for the results, if there are several')
    .option('--json', 'print JSON')
    .action((file: string, options: PutOptions) => put(file, options, io))
}

async function put(file: string, { mount, json, ...options }: PutOptions, io: Io): Promise<void> {
  const name = file === '-' ? 'stdin' : file
  const values = parseValues(await readFileOrStdin(file), name)
  const local = await requireLocalSetUp(options, io)
  const planned = plannedFor(local, mount)
  const log = createTextLog(io, 'warn')
  const store = local.config?.store
  const catalog = await openCatalog([planned], {
    log,
    scrubber: io.secrets,
    ...defined({ store }),
  }).catch(rethrowAsFailure)
  try {
    const [mount] = catalog.mounts.filter(isWritable)
    if (mount === undefined) throw commandFailure(`The mount ${planned.address} does not store results.`)
    const outcomes = await putAll(mount, values, name)
    if (json) return await writeJson(io.out, outcomes)
    const layOut = createColumns()
    await io.out.write(layOut(outcomes.map(({ status, uri }) => [status, escapeText(uri)])))
    io.say(`${formatCount(outcomes.length, 'analysis', 'analyses')} in ${mount.address}.`)
  } finally {
    await catalog.close()
  }
}

async function putAll({ provider, address }: WritableMount, values: readonly PositionedValue[], file: string) {
  for (const { value, position } of values) {
    try {
      provider.check(value)
    } catch (error) {
      throw wrong(error, `${file}${position}`)
    }
  }
  const outcomes: (StoreOutcome & { readonly uri: string })[] = []
  for (const { value, position } of values) {
    const outcome = await provider.put(value).catch((error: unknown) => {
      throw wrong(error, `${file}${position}`)
    })
    outcomes.push({ uri: formatUri(parseAddress(address), `results/${outcome.id}`), ...outcome })
  }
  return outcomes
}

/** An error of an analysis is a failure of the command, and not a usage error. */
function wrong(error: unknown, position: string): unknown {
  if (!isResourceError(error)) return error
  return commandFailure(
    error.message
      .split('\n')
      .map((line) => `${position}: ${line}`)
      .join('\n'),
  )
}

async function readFileOrStdin(file: string): Promise<string> {
  try {
    if (file !== '-') return await readFile(file, 'utf8')
    const chunks: Uint8Array[] = []
    for await (const chunk of process.stdin) chunks.push(chunk as Uint8Array)
    return Buffer.concat(chunks).toString('utf8')
  } catch (error) {
    throw commandFailure(
      `${file === '-' ? 'stdin' : `The file ${file}`} cannot be read (${errorCodeOf(error) ?? 'unknown'}).`,
    )
  }
}

/** A value and its position: `:3` for a line, `[2]` for an element of an array. */
interface PositionedValue {
  readonly value: unknown
  readonly position: string
}

function parseValues(text: string, file: string): readonly PositionedValue[] {
  const body = text.replace(/^\ufeff/, '')
  const whole = jsonIn(body)
  if (whole !== undefined) {
    const values: readonly unknown[] = Array.isArray(whole) ? whole : [whole]
    if (values.length === 0) throw commandFailure(`${file} contains no analysis.`)
    return values.map((value, index) => ({ value, position: Array.isArray(whole) ? `[${index}]` : '' }))
  }
  const lines = body.split('\n').flatMap((line, index) => (line.trim() === '' ? [] : [{ line, number: index + 1 }]))
  if (lines.length === 0) throw commandFailure(`${file} contains no analysis.`)
  return lines.map(({ line, number }) => {
    const value = jsonIn(line)
    if (value === undefined)
      throw commandFailure(
        `${file}:${number}: This is not valid JSON. Write one analysis or an array of them, or one analysis on each line.`,
      )
    return { value, position: `:${number}` }
  })
}

function plannedFor({ mounts, config }: LocalSetUp, address: string | undefined) {
  const keeping = mounts.filter(({ config }) => mountSource(config).writers !== undefined)
  const addresses = keeping.map((mount) => mount.address)
  if (keeping.length === 0)
    throw commandFailure(
      `${config?.file ?? 'The current folder'} has no mount for results. Add one: "wallbounce://project": { "provider": "results" }.`,
    )
  const bare = (text: string) => text.replace(/\/$/, '')
  const plannedMounts =
    address === undefined ? keeping : keeping.filter((mount) => bare(mount.address) === bare(address))
  const [first] = plannedMounts
  if (first === undefined)
    throw usageError(`No mount for results is at ${address}. There is one at: ${addresses.join(', ')}.`)
  if (plannedMounts.length > 1)
    throw usageError(`Several mounts store results. Give --mount ${addresses.join(', or --mount ')}.`)
  return first
}
