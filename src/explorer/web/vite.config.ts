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

/** Makes the layout of diagrams break cycles depth-first: arrows back to an earlier step point backwards, and the first node is first. */
function diagramOrder(): Plugin {
  const option = '"elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES"'
  return {
    name: 'diagram-order',
    transform(code, id) {
      if (!id.includes('/beautiful-mermaid/dist/index.js')) return undefined
      if (!code.includes(option)) throw new Error('beautiful-mermaid sets its layout in another way than before.')
      return { code: code.replace(option, `"elk.layered.cycleBreaking.strategy": "DEPTH_FIRST", ${option}`), map: null }
    },
  }
}

/** Builds the page into `dist/explorer/page`, from where src/explorer/index.ts serves it. */
export default defineConfig({
  root: import.meta.dirname,
  // The page may be served below any path.
  base: './',
  publicDir: false,
  plugins: [pdfAssets()],
  worker: { format: 'es', plugins: () => [diagramOrder()] },
  build: {
    outDir: resolve(import.meta.dirname, '../../../dist/explorer/page'),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Do not print the times of the build steps, which only distract in the output of `npm start`.
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
  logLevel: 'warn',
})
