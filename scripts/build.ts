import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { build as buildPage } from 'vite'
import { bundle } from './bundle.ts'
import { writeNotices } from './notices.ts'

// Builds `dist/`: the bundle, the page of the explorer, and the licences of all that is in them.

const target = resolve(import.meta.dirname, '../dist')
rmSync(target, { recursive: true, force: true })
const modules = await bundle({ target })

/** The modules of the explorer's page and of its workers. */
const pageModules = new Set<string>()
const collectModules = () => ({
  name: 'collect-modules',
  transform: (_code: string, id: string) => void pageModules.add(id),
})
await buildPage({
  configFile: resolve(import.meta.dirname, '../src/explorer/web/vite.config.ts'),
  plugins: [collectModules()],
  worker: { plugins: () => [collectModules()] },
})

writeNotices([...modules, ...pageModules], target)
