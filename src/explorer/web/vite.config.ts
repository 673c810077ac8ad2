import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig, type Plugin } from 'vite'

/** Files that pdf.js fetches on demand: tables of East Asian characters, and substitutes for fonts that a document does not contain. */
function pdfAssets(): Plugin {
  const home = dirname(fileURLToPath(import.meta.resolve('pdfjs-dist/package.json')))
  const folders = { cmaps: 'cmaps', fonts: 'standard_fonts' }
  return {
    name: 'pdf-assets',
    generateBundle() {
      for (const [to, from] of Object.entries(folders))
        for (const name of readdirSync(join(home, from)))
          this.emitFile({ type: 'asset', fileName: `pdf/${to}/${name}`, source: readFileSync(join(home, from, name)) })
    },
  }
}

/** Builds the page into `dist/explorer/page`, from where src/explorer/page.ts serves it. */
export default defineConfig({
  root: import.meta.dirname,
  // The page may be served below any path.
  base: './',
  publicDir: false,
  plugins: [pdfAssets()],
  worker: { format: 'es' },
  build: {
    outDir: resolve(import.meta.dirname, '../../../dist/explorer/page'),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
  logLevel: 'warn',
})
