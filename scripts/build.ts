import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { build as buildPage } from 'vite'
import { bundle } from './bundle.ts'
import { writeNotices } from './notices.ts'

// Builds `dist/`: the bundle, the page of the explorer, the same as an MCP App, and the licences of all that is in them.

/** Tells `npm start`, which started this, what is being built. */
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
// Each has steps that keep one processor alone at work.
const [modules] = await Promise.all([
  bundle({ target }),
  buildPage({
    configFile: inExplorer('vite.config.ts'),
    plugins: [collectModules()],
    worker: { plugins: () => [collectModules()] },
  }),
  buildPage({ configFile: inExplorer('host/vite.config.ts'), plugins: [collectModules()] }),
])

tell('2 of 2: the licences')
writeNotices([...modules, ...pageModules], target)
if (process.connected) process.disconnect()
