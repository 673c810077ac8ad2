import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isResourceError } from '../../../core/errors.ts'
import { parseSearchStatus, type SearchStatusMount } from '../../../core/found.ts'
import { sourceNamed } from '../../../providers/index.ts'
import type { LazyStore } from '../../../providers/mount-settings.ts'
import type { Findings } from '../../commands/doctor.ts'
import { placesOf, textAt } from '../../commands/search.ts'
import { counted, formatSize } from '../../terminal/format.ts'
import { openLocal, storeOf } from '../local.ts'
import type { Case } from './case.ts'

/** Checks whether the store answers, if a mount needs it. Resolves to whether mounts can be opened with it. */
export async function checkStore(
  { local, mounts, placeOf }: Case,
  store: LazyStore | undefined,
  { tell, doing }: Findings,
): Promise<boolean> {
  const kept = storeOf(local)
  if (kept === undefined || store === undefined) return false
  if (!mounts.some(({ config: { provider } }) => sourceNamed(provider)?.keeps === true)) return true
  doing('Opening the store')
  const where = 'sqlite' in kept ? kept.sqlite.file : 'PostgreSQL'
  const failed = (found: string, fix: string) => tell({ check: 'store', status: 'failed', found, fix })
  const refused = 'sqlite' in kept ? await faultOfFile(kept.sqlite.file) : undefined
  if (refused !== undefined) {
    failed(refused, `Let this user write there, or keep it elsewhere: ${placeOf(['store', 'sqlite'])}`)
    return false
  }
  try {
    const size = 'sqlite' in kept ? await sizeOf(kept.sqlite.file) : undefined
    // A check must not create a missing store.
    if ('sqlite' in kept && size === undefined) {
      tell({ check: 'store', status: 'ok', found: `${where} is made when something is kept` })
      return true
    }
    const opened = await store.open()
    await opened.collection('hikidashi-doctor').size()
    tell({ check: 'store', status: 'ok', found: `${where}${size === undefined ? '' : `, ${formatSize(size)}`}` })
    return true
  } catch (error) {
    if (!isResourceError(error)) throw error
    const fix =
      'sqlite' in kept
        ? `End what else uses ${where}, or move it away: it is made anew, and indexed again.`
        : `Check that the database is up, and the URL at ${placeOf(['store', 'postgres'])}`
    failed(`${where}: ${error.message}`, fix)
    return false
  }
}

async function faultOfFile(file: string): Promise<string | undefined> {
  // Opening the store creates the missing folders above it.
  for (let path = file; ; path = dirname(path)) {
    const code = await access(path, constants.W_OK).then(
      () => undefined,
      (error: NodeJS.ErrnoException) => error.code ?? 'unknown',
    )
    if (code === undefined) return undefined
    if (code !== 'ENOENT' || dirname(path) === path) return `${path} cannot be written (${code}).`
  }
}

async function sizeOf(file: string): Promise<number | undefined> {
  return stat(file).then(
    ({ size }) => size,
    () => undefined,
  )
}

/** Reports how far each search has indexed its mounts. */
export async function checkIndex({ local, mounts, log, secrets, withConfig }: Case, findings: Findings): Promise<void> {
  if (!mounts.some(({ config: { provider } }) => provider === 'search')) return
  findings.doing('Asking the index')
  const catalog = await openLocal(local, log, secrets)
  try {
    const view = catalog.view(local.principal)
    for (const place of await placesOf(view)) {
      const status = parseSearchStatus(await textAt(view, place.status))
      if (status === undefined) continue
      const { documents = 0, indexing, embedding } = status
      const behind = status.mounts.filter(({ state }) => state !== 'current')
      const failing = embedding?.failing
      const about = `${place.address}: ${counted(documents, 'document')}`
      if (failing !== undefined)
        findings.tell({
          check: 'index',
          status: 'warning',
          found: `${about}; there are no vectors: ${failing}`,
          fix: `Check "embeddings" of ${place.address}; words are found all the same.`,
        })
      else if (behind.length > 0 && indexing === 'stopped' && documents === 0)
        findings.tell({
          check: 'index',
          status: 'warning',
          found: `${about}: nothing is indexed yet.`,
          fix: `hikidashi serve${withConfig}, which indexes while it serves; or: hikidashi search WORDS${withConfig}`,
        })
      else findings.tell({ check: 'index', status: 'ok', found: `${about}${behind.map(formatBehind).join('')}` })
    }
  } finally {
    await catalog.close()
  }
}

function formatBehind({ address, state, looked, of }: SearchStatusMount): string {
  const far = looked === undefined || of === undefined ? '' : ` ${looked} of ${of}`
  return `; ${address} ${state === 'comparing' ? `is being compared${far}` : state}`
}
