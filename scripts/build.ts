import { copyFileSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { build as buildPage } from 'vite'
import { bundle } from './bundle.ts'
import { writeNotices } from './notices.ts'
import { copiedModules } from './vendored.ts'

// Builds `dist/`: the bundle, the explorer as a page and as an MCP App, and the licences of all bundled packages.

// Vite keeps a NODE_ENV that is set, as tests do, and then builds pages for development.
process.env.NODE_ENV = 'production'

/** Reports the current step to the parent process, if `npm start` started this script. */
const tell = (what: string) => process.send?.(what)

const target = resolve(import.meta.dirname, '../dist')
rmSync(target, { recursive: true, force: true })
tell('1 of 2: the command and the page')

/** The modules of the explorer's page and of its workers. */
const pageModules = new Set<string>()
const collectModules = () => ({
  name: 'collect-modules',
  transform: (_code: string, id: string) => void pageModules.add(id),
})
const inExplorer = (file: string) => resolve(import.meta.dirname, '../src/explorer/web', file)
// The builds run concurrently, because each has steps that use only one processor.
const [modules] = await Promise.all([
  bundle({ target }),
  buildPage({
    configFile: inExplorer('vite.config.ts'),
    plugins: [collectModules()],
    worker: { plugins: () => [collectModules()] },
  }),
  buildPage({ configFile: inExplorer('host/vite.config.ts'), plugins: [collectModules()] }),
])

// The mark as a picture of points, for bundles.
copyFileSync(inExplorer('icon.png'), resolve(target, 'icon.png'))
tell('2 of 2: the licences')
writeNotices([...modules, ...pageModules, ...copiedModules], target)
if (process.connected) process.disconnect()
