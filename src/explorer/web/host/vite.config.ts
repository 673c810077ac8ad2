import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { defineConfig, type Plugin } from 'vite'

const web = resolve(import.meta.dirname, '..')

/** Modules of the explorer with their replacements: a host forbids something that they need, or the app has no room for them. */
const replaced: Readonly<Record<string, string>> = {
  'basket/export.tsx': 'export.tsx',
  'state/browser.ts': 'connect.ts',
  'tree/facets-bar.tsx': 'views.tsx',
  'preview/chart.tsx': 'views.tsx',
  'preview/difference.tsx': 'views.tsx',
  'preview/earlier.ts': 'views.tsx',
  'preview/formulas.ts': 'views.tsx',
  'preview/model/pattern.ts': 'views.tsx',
  'preview/workers.ts': 'views.tsx',
  'preview/page.tsx': 'views.tsx',
  'preview/pdf.tsx': 'views.tsx',
}

function replacements(): Plugin {
  const own = new Map(Object.entries(replaced).map(([from, to]) => [join(web, from), join(import.meta.dirname, to)]))
  return {
    name: 'replacements',
    enforce: 'pre',
    async resolveId(source, importer, options) {
      if (!source.startsWith('.')) return undefined
      const id = await this.resolve(source, importer, { ...options, skipSelf: true })
      return id === null ? undefined : (own.get(id.id) ?? id)
    },
  }
}

/** Inlines script and styles into the document, because a host loads nothing else. */
function oneFile(): Plugin {
  return {
    name: 'one-file',
    enforce: 'post',
    generateBundle(_options, bundle) {
      const files = Object.entries(bundle)
      const styles = files.flatMap(([, file]) => (file.type === 'asset' ? [String(file.source)] : []))
      const scripts = files.flatMap(([, file]) => (file.type === 'chunk' ? [file.code] : []))
      if (scripts.length !== 1 || styles.length !== 1)
        throw new Error('The build of the app must have exactly one script and one style sheet.')
      for (const [name] of files) delete bundle[name]
      // The inlined text must not contain the end tag of its element.
      const style = `<style>${styles.join('').replaceAll('</style', '<\\/style')}</style>`
      const safe = scripts.join('').replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--')
      const page = readFileSync(join(import.meta.dirname, 'page.html'), 'utf8')
      const source = page
        .replace('</head>', () => `${style}</head>`)
        .replace('</body>', () => `<script>${safe}</script></body>`)
      this.emitFile({ type: 'asset', fileName: 'index.html', source })
    },
  }
}

/** Builds the explorer as an MCP App into one file, `dist/explorer/app/index.html`, which src/explorer/app.ts reads. */
export default defineConfig({
  root: import.meta.dirname,
  base: './',
  publicDir: false,
  plugins: [replacements(), oneFile()],
  build: {
    outDir: resolve(web, '../../../dist/explorer/app'),
    emptyOutDir: true,
    target: 'es2022',
    // Built as a library, so that no preloading code is added: there are no further chunks to load.
    lib: { entry: resolve(import.meta.dirname, 'main.tsx'), formats: ['iife'], name: 'hikidashi', fileName: 'app' },
    cssCodeSplit: false,
    reportCompressedSize: false,
    rolldownOptions: { checks: { bundlerTimings: false }, output: { codeSplitting: false } },
  },
  logLevel: 'warn',
})
