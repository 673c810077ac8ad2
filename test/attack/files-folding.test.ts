import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { compileAccess } from '../../src/core/access.ts'
import { createCatalog } from '../../src/core/catalog.ts'
import type { Provider } from '../../src/core/provider.ts'
import { createFiles } from '../../src/providers/files/index.ts'
import { bundled } from '../support/bundled.ts'
import { contextOf, listPaths, textAt } from '../support/folder.ts'
import { requires } from '../support/require.ts'

/** Whether this machine can mount exFAT, which takes every case of a letter for the same name. */
const hasExfat =
  process.platform === 'linux' &&
  process.getuid?.() === 0 &&
  fs.existsSync('/dev/fuse') &&
  ['mkfs.exfat', 'mount.exfat-fuse'].every((name) => fs.existsSync(join('/usr/sbin', name)))

const run = (program: string, ...args: string[]) => execFileSync(program, args, { encoding: 'utf8' }).trim()

requires(
  'exfat',
  hasExfat,
  'exfat-fuse, exfatprogs and root are needed',
)('exFAT:', () => {
  let home = ''
  let disk = ''
  let root = ''
  const opened: Provider[] = []
  beforeAll(() => {
    home = fs.mkdtempSync(join(tmpdir(), 'hikidashi-exfat-'))
    const image = join(home, 'image')
    fs.writeFileSync(image, '')
    fs.truncateSync(image, 64 * 1024 * 1024)
    run('mkfs.exfat', image)
    disk = run('losetup', '-f', '--show', image)
    root = join(home, 'disk')
    fs.mkdirSync(root)
    run('mount.exfat-fuse', disk, root)
    for (const name of ['secret', 'pub', '2024']) fs.mkdirSync(join(root, name))
    fs.writeFileSync(join(root, 'secret/plan.md'), 'CANARY')
    fs.writeFileSync(join(root, '2024/left-out.md'), 'CANARY')
    fs.writeFileSync(join(root, 'pub/Open.md'), 'open')
    fs.writeFileSync(join(root, 'Ärger.md'), 'open')
    fs.writeFileSync(join(root, '.gitignore'), 'ignored.md\n')
    fs.writeFileSync(join(root, 'ignored.md'), 'CANARY')
  })
  afterEach(() => Promise.all(opened.splice(0).map((provider) => provider.close?.())))
  afterAll(() => {
    if (disk !== '') {
      run('umount', root)
      run('losetup', '-d', disk)
    }
    fs.rmSync(home, { recursive: true })
  })

  const aliases = [
    ...['SECRET/plan.md', 'secret/PLAN.md', 'Secret/Plan.MD', 'PUB/Open.md', 'pub/open.md', 'pub/OPEN.MD'],
    ...['2024/LEFT-OUT.md', 'ärger.md', 'ÄRGER.MD', 'Ignored.md', 'IGNORED.MD', '.GITIGNORE'],
  ]
  const open = async (portable: boolean) => {
    const provider = await createFiles({ root, exclude: ['2024/**'] }, { portable })
    opened.push(provider)
    return provider
  }

  test.each([false, true])(
    'on a disk that ignores letter case, only the listed spelling of a name is found (without directory descriptors: %s) (PT36)',
    async (portable) => {
      for (const path of aliases) expect(fs.existsSync(join(root, path)), path).toBe(true)
      const provider = await open(portable)
      expect(await listPaths(provider)).toEqual(['.gitignore', 'pub/Open.md', 'secret/plan.md', 'Ärger.md'])
      expect(await textAt(provider, 'pub/Open.md')).toBe('open')
      expect(await textAt(provider, 'Ärger.md')).toBe('open')
      for (const path of [...aliases, 'ignored.md', '2024/left-out.md']) {
        expect(await textAt(provider, path), path).toBe('!not-found')
        await expect(provider.stat?.(path, contextOf()), path).rejects.toMatchObject({ kind: 'not-found' })
      }
      for (const prefix of ['SECRET/', 'PUB/']) expect(await listPaths(provider, { prefix })).toEqual([])
    },
  )

  test.each([false, true])(
    'on a disk that ignores letter case, another spelling does not bypass an access rule (without directory descriptors: %s) (PT36)',
    async (portable) => {
      const access = compileAccess([{ allow: ['*'] }, { deny: ['*'], match: 'secret/**' }])
      const catalog = createCatalog({ mounts: [{ address: 'file:///docs', provider: await open(portable), access }] })
      const view = catalog.view({ id: 'guest', roles: [] })
      for (const path of ['secret/plan.md', ...aliases])
        await expect(view.read(`file:///docs/${encodeURI(path)}`), path).rejects.toMatchObject({ kind: 'not-found' })
      expect((await view.read('file:///docs/pub/Open.md')).contents).toMatchObject([{ text: 'open' }])
    },
  )

  test('doctor says that changes on a disk that ignores letter case are found by comparing its files (PT36)', () => {
    const env = { PATH: process.env.PATH ?? '', HOME: home, XDG_STATE_HOME: join(home, 'state') }
    const said = execFileSync(process.execPath, [bundled('cli/main'), 'doctor'], { cwd: root, env, encoding: 'utf8' })
    expect(said).toMatch(/^note +changes +file:.*: its file system reports no changes, so the files are compared/m)
  })
})
