import { readFile } from 'node:fs/promises'
import { isAbsolute, relative } from 'node:path'
import { parseDocument } from '../../../config/document.ts'
import { lazyStore } from '../../../config/lazy-store.ts'
import { type ConfigProblem, formatKey } from '../../../config/problem.ts'
import type { Log } from '../../../core/log.ts'
import type { Diagnosis, Findings } from '../../commands/doctor.ts'
import { CommandError } from '../../terminal/exit.ts'
import { count } from '../../terminal/format.ts'
import { type Planned, planLocal, storeOf } from '../local.ts'
import type { Secrets } from '../secrets.ts'
import { reasonsOf, trustCommand } from '../withheld.ts'
import type { Case } from './case.ts'
import { checkHttp } from './http.ts'
import { checkMounts } from './mounts.ts'
import { checkPrograms, checkSecrets } from './needs.ts'
import { checkStore } from './store.ts'

/** Looks at what is configured here, from the file itself to each mount in it. */
export async function checkLocal(
  options: { readonly config?: string; readonly limit: number },
  findings: Findings,
  { log, secrets }: { readonly log: Log; readonly secrets: Secrets },
): Promise<void> {
  findings.doing('Reading the configuration')
  const planned = await plan(options.config, secrets, findings)
  if (planned === undefined) return
  if ('problems' in planned) {
    tellProblems(planned.problems, findings)
    return
  }
  const { local } = planned
  const { config } = local
  const mounted = count(local.mounts.length, 'mount')
  if (config === undefined)
    findings.tell({
      ...configuration,
      status: 'ok',
      found: `There is no hikidashi.json here: the current folder is served. To serve more: hikidashi init`,
    })
  else findings.tell({ ...configuration, status: 'ok', found: `${config.file}: valid, ${mounted}` })
  const absent = config?.absent ?? []
  tellProblems(
    absent.map(({ problem }) => problem),
    findings,
  )
  for (const part of config?.withheld ?? [])
    findings.tell({
      check: 'trust',
      status: 'warning',
      found: `${part.name} is left out, because you have not trusted this configuration: it ${reasonsOf(part)}.`,
      fix: trustCommand(config?.file ?? ''),
    })
  const withConfig = options.config === undefined ? '' : ` --config ${options.config}`
  const placeOf = await placesIn(config?.file)
  const here: Case = {
    local,
    mounts: (await local.complete?.()) ?? local.mounts,
    limit: options.limit,
    log,
    secrets,
    placeOf,
    withConfig,
  }
  // Mounts that lack something cannot be opened: the fault would be told twice.
  const lacking = new Set([
    ...absent.map(({ address }) => address),
    ...(await checkSecrets(here, findings)),
    ...(await checkPrograms(here, findings)),
  ])
  const kept = storeOf(local)
  const store = kept === undefined ? undefined : lazyStore(kept, log)
  try {
    const isStored = await checkStore(here, store, findings)
    await checkMounts(here, lacking, isStored ? store : undefined, findings)
  } finally {
    await store?.close()
  }
  await checkHttp(here, findings)
}

const configuration: Pick<Diagnosis, 'check'> = { check: 'configuration' }

function tellProblems(problems: readonly ConfigProblem[], { tell }: Findings): void {
  for (const { file, line, column, key, message, fix } of problems) {
    const place = line === 0 ? file : `${file}:${line}:${column}`
    tell({ ...configuration, status: 'failed', found: `${place}: ${key === '' ? '' : `${key}: `}${message}`, fix })
  }
}

/** Returns the planned configuration; undefined when there is none, after telling so. */
async function plan(config: string | undefined, secrets: Secrets, { tell }: Findings): Promise<Planned | undefined> {
  try {
    return await planLocal(config === undefined ? {} : { config }, secrets)
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    const fix = 'hikidashi doctor --config FILE, or: cd FOLDER && hikidashi init'
    tell({ ...configuration, status: 'failed', found: error.message, fix })
    return undefined
  }
}

/** Says where something stands in a file. */
async function placesIn(file: string | undefined): Promise<Case['placeOf']> {
  if (file === undefined) return formatKey
  const { document } = parseDocument(file, await readFile(file, 'utf8'))
  const below = relative(process.cwd(), file)
  const shown = below.startsWith('..') || isAbsolute(below) ? file : below
  return (path) => `${shown}:${document.positionOf(path, 'key').line}: ${formatKey(path)}`
}
