import { type Command, InvalidArgumentError } from 'commander'
import { createDeliveries } from '../../config/deliveries.ts'
import { createLazyStore } from '../../providers/source.ts'
import { requireLocalSetUp } from '../operations/local.ts'
import { commandFailure, helpExamples, rethrowAsFailure } from '../terminal/exit.ts'
import { type Io, writeJson } from '../terminal/io.ts'
import { createTextLog } from '../terminal/log.ts'
import { createColumns, escapeText } from '../terminal/text.ts'

interface EventsOptions {
  readonly config?: string
  readonly limit: number
  readonly json?: true
}

export function define(command: Command, io: Io): void {
  command
    .description(
      'Shows the latest deliveries of events to the endpoints of clients (webhooks): when, to whom, and whether the endpoint accepted them. Contents and secrets are not stored.',
    )
    .argument('[subscription]', 'the id of a subscription, such as sub_0123; by default all')
    .option('--config <file>', 'the configuration; by default hikidashi.json here')
    .option('-n, --limit <number>', 'maximum number of deliveries', parseLimit, 50)
    .option('--json', 'print JSON')
    .addHelpText(
      ...helpExamples(`
  hikidashi events
  hikidashi events sub_3f1c8e2b0d49f7e0a3f1c8e2b0d49f7e -n 10`),
    )
    .action((subscription: string | undefined, options: EventsOptions) => show(subscription, options, io))
}

function parseLimit(value: string): number {
  const limit = Number(value)
  if (/^\d+$/.test(value) && limit >= 1 && limit <= 10_000) return limit
  throw new InvalidArgumentError('Give a whole number from 1 to 10000.')
}

async function show(
  subscription: string | undefined,
  { limit, json, ...options }: EventsOptions,
  io: Io,
): Promise<void> {
  const { config } = await requireLocalSetUp(options, io)
  if (config === undefined)
    throw commandFailure(
      'The current folder has no hikidashi.json, and only a server with a configuration delivers events. Name a configuration with --config FILE.',
    )
  const log = createTextLog(io, 'warn')
  const store = createLazyStore(config.store, log)
  const deliveries = createDeliveries(store, log)
  try {
    const records = await deliveries.latest(limit, subscription).catch(rethrowAsFailure)
    if (json) return await writeJson(io.out, records)
    if (records.length === 0)
      return io.say(`No delivery${subscription === undefined ? '' : ` to ${subscription}`} is recorded.`)
    const layOut = createColumns()
    await io.out.write(
      layOut(
        records.map(({ time, subscription: id, outcome, kind, attempt, name, origin }) =>
          [time, id, outcome, `${kind} ${attempt}`, name, origin].map(escapeText),
        ),
      ),
    )
  } finally {
    await store.close()
  }
}
