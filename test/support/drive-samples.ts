import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type GdriveOptions, gdrive } from '../../src/providers/gdrive/index.ts'
import { type DriveStandIn, startDrive } from './drive-stand-in.ts'
import { types } from './drive-table.ts'
import { workbook } from './workbook.ts'

/** The expected listing of a mount of the whole My Drive of {@link fillDrive}, with the contents. */
export const served = {
  'docs/plan': '# Plan\n\nHello, 世界.\n',
  'docs/deep/notes-1': 'notes\n',
  'docs-2/pdf': Buffer.from('%PDF-1.4\n\0binary'),
  'same-a': 'first',
  'same-b': 'second',
  'odd-1': 'slash',
  'odd-2': 'climbs',
  'odd-3': 'turns',
  empty: '',
  deck: 'Slide one\n',
  'sketch-1': Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'),
  'link-1': 'first',
} as const

/** File names that no file system allows; the provider uses them as titles only. */
export const oddNames = { 'odd-1': 'a/b\\c', 'odd-2': '../../etc/passwd', 'odd-3': 'gpj.\u202eexe\nline' } as const

const modified = Date.parse('2026-02-03T04:05:06Z')

/** Fills My Drive with files of every kind. */
export function fillDrive({ table }: Pick<DriveStandIn, 'table'>): void {
  const { add } = table
  add({ id: 'docs', name: 'Documents' })
  add({ id: 'deep', name: 'Deep', parent: 'docs' })
  add({ id: 'docs-2', name: 'Documents' })
  add({ id: 'void', name: 'Empty folder' })
  add({
    id: 'plan',
    name: 'Plan',
    parent: 'docs',
    mimeType: types.document,
    exports: { 'text/markdown': served['docs/plan'], 'application/pdf': Buffer.from('%PDF-1.4') },
  })
  add({ id: 'notes-1', name: 'notes.txt', parent: 'deep', content: served['docs/deep/notes-1'], modified })
  add({ id: 'pdf', name: 'Paper', parent: 'docs-2', mimeType: 'application/pdf', content: served['docs-2/pdf'] })
  add({ id: 'same-a', name: 'Same name.txt', content: 'first' })
  add({ id: 'same-b', name: 'Same name.txt', content: 'second' })
  for (const [id, name] of Object.entries(oddNames))
    add({ id, name, content: served[id as keyof typeof oddNames], mimeType: 'text/plain' })
  add({ id: 'empty', name: 'empty.txt', content: '' })
  add({ id: 'deck', name: 'Deck', mimeType: types.presentation, exports: { 'text/plain': served.deck } })
  add({
    id: 'sketch-1',
    name: 'Sketch',
    mimeType: types.drawing,
    exports: { 'image/png': served['sketch-1'], 'image/svg+xml': '<svg xmlns="http://www.w3.org/2000/svg"/>' },
  })
  add({ id: 'poll', name: 'A form has no content', mimeType: types.form })
  add({ id: 'kept', name: 'May not be fetched', content: 'secret', canDownload: false })
  add({ id: 'link-1', name: 'To the first', target: 'same-a' })
  add({ id: 'dead', name: 'To nothing', target: 'gone' })
  add({ id: 'loop', name: 'To where it lies', parent: 'deep', target: 'docs' })
}

/** Adds a spreadsheet of two sheets, with cells that CSV must quote. */
export function addBudget({ table }: Pick<DriveStandIn, 'table'>): void {
  const sheets = workbook([
    {
      name: 'Costs',
      rows: [
        ['Item', 'Price'],
        ['Tea, green', '3.5'],
        ['A "quoted" one', '7'],
      ],
    },
    {
      name: '売上',
      rows: [
        ['月', '額'],
        ['一月', '100'],
      ],
    },
  ])
  table.add({
    id: 'budget',
    name: 'Budget',
    mimeType: types.spreadsheet,
    exports: { 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': sheets },
  })
}

/** Opens a provider for the account of the stand-in, with its service account. */
export function openDrive(drive: DriveStandIn, options: Partial<GdriveOptions> = {}) {
  return gdrive({
    credentials: { kind: 'service', key: drive.oauth.key },
    endpoint: drive.url,
    // Each request checks for changes first.
    intervalMs: 100,
    timeoutMs: 20_000,
    ...options,
  })
}

export async function startFilled(): Promise<DriveStandIn> {
  const drive = await startDrive()
  fillDrive(drive)
  return drive
}

/** Starts a filled Drive, and returns its mount in a configuration; the key is in a separate folder. */
export async function startDriveMount() {
  const drive = await startFilled()
  const folder = await mkdtemp(join(tmpdir(), 'hikidashi-drive-'))
  const file = join(folder, 'key.json')
  await writeFile(file, drive.oauth.key, { mode: 0o600 })
  return {
    drive,
    mount: { provider: 'gdrive', key: { file }, endpoint: drive.url },
    close: async () => {
      await drive.close()
      await rm(folder, { recursive: true })
    },
  }
}
