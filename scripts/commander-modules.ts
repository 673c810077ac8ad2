import type { Plugin } from 'rolldown'

/** Patterns of imports and exports in the files of commander, each with its replacement in an ES module. */
const rewrites: readonly (readonly [RegExp, string])[] = [
  // Our commands never make commander start a program, so the module is loaded only on demand.
  [
    /^const childProcess = require\('node:child_process'\);$/gm,
    "const childProcess = { spawn: (...args) => process.getBuiltinModule('node:child_process').spawn(...args) };",
  ],
  [/^const (\w+) = require\('(node:\w+)'\)\.\1;$/gm, "import { $1 } from '$2';"],
  [/^const (\w+) = require\('(node:\w+)'\);$/gm, "import $1 from '$2';"],
  [/^const (\{[^{}]*\}) = require\('(\.\/[\w/]+?)(?:\.js)?'\);$/gm, "import $1 from '$2.js';"],
  [/^exports\.(\w+) = \1;/gm, 'export { $1 };'],
  [/^exports\.(\w+) = (\w+);/gm, 'export { $2 as $1 };'],
  [/^exports\.(\w+) = (new |\()/gm, 'export const $1 = /* @__PURE__ */ $2'],
]

/**
 * Converts the files of commander to ES modules. The bundler would wrap each CommonJS file in a function, which V8 parses twice: with the
 * chunk, and again when the function is called. That would be 60 kB at each start of the command line.
 */
export function commanderAsModules(): Plugin {
  return {
    name: 'commander-as-modules',
    transform(code, id) {
      const [, file] = /[\\/]node_modules[\\/]commander[\\/]([\w\\/]+\.m?js)$/.exec(id) ?? []
      if (file === undefined) return null
      if (file === 'esm.mjs') return { code: "export * from './index.js';" }
      const rewritten = rewrites.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), code)
      const left = /^.*\b(?:require\(|exports\b).*$/m.exec(rewritten.replace(/^\s*(?:\*|\/\/).*$/gm, ''))?.[0]
      if (left !== undefined) throw new Error(`${file} of commander has a line that is not known: ${left}`)
      return { code: rewritten }
    },
  }
}
