/** File extensions by highlight.js language. */
const endings: Readonly<Record<string, string>> = {
  typescript: 'ts tsx mts cts',
  javascript: 'js jsx mjs cjs',
  json: 'json jsonc json5 webmanifest map code-workspace',
  python: 'py pyi pyw',
  go: 'go',
  rust: 'rs',
  java: 'java',
  kotlin: 'kt kts',
  swift: 'swift',
  c: 'c h',
  cpp: 'cc cpp cxx hh hpp hxx ino',
  csharp: 'cs csx',
  ruby: 'rb rake gemspec',
  php: 'php phtml',
  perl: 'pl pm',
  lua: 'lua',
  r: 'r',
  scala: 'scala sbt',
  elixir: 'ex exs',
  haskell: 'hs',
  bash: 'sh bash zsh ksh',
  powershell: 'ps1 psm1',
  dos: 'bat cmd',
  sql: 'sql',
  yaml: 'yaml yml',
  ini: 'ini toml cfg cnf conf editorconfig service desktop',
  properties: 'properties env',
  xml: 'xml html htm xhtml svg vue svelte rss atom plist xsd xsl',
  css: 'css',
  scss: 'scss',
  less: 'less',
  markdown: 'md markdown mdx',
  diff: 'diff patch',
  dockerfile: 'dockerfile',
  makefile: 'mk makefile',
  cmake: 'cmake',
  graphql: 'graphql gql',
  protobuf: 'proto',
  nginx: 'nginx',
  tex: 'tex sty',
}

/** The common MIME type of a language, if it does not contain the name of the language. */
const types: Readonly<Record<string, string>> = {
  'application/sql': 'sql',
  'application/toml': 'ini',
  'application/xml': 'xml',
  'application/yaml': 'yaml',
  'application/graphql': 'graphql',
  'application/javascript': 'javascript',
  'text/javascript': 'javascript',
  'text/x-sh': 'bash',
  'application/x-sh': 'bash',
  'text/x-c': 'c',
  'text/x-c++': 'cpp',
  'text/x-diff': 'diff',
}

const byEnding = new Map(
  Object.entries(endings).flatMap(([language, names]) => names.split(' ').map((name) => [name, language] as const)),
)

/** The languages that are highlighted. */
export const languages: readonly string[] = Object.keys(endings)

/** The language for highlighting: by the name of the file, because the types of programs are seldom known; else by its type. */
export function languageOf(type: string | undefined, uri: string): string | undefined {
  const path = uri.replace(/[?#].*$/s, '')
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase()
  const found = byEnding.get(name.slice(name.lastIndexOf('.') + 1)) ?? byEnding.get(name.split('.')[0] ?? '')
  if (found !== undefined && (name.includes('.') || /^(dockerfile|makefile)/.test(name))) return found
  if (type === undefined) return undefined
  if (types[type] !== undefined) return types[type]
  if (type.endsWith('+xml')) return 'xml'
  if (type.endsWith('+json')) return 'json'
  const plain = type.replace(/^[a-z]+\/(x-)?/, '').replace(/-source$/, '')
  return languages.includes(plain) ? plain : byEnding.get(plain)
}

/** The language in the info string of a Markdown fence. */
export function languageOfFence(info: string): string | undefined {
  const [name = ''] = info
    .trim()
    .toLowerCase()
    .split(/[\s,{:]/)
  if (name === 'shell' || name === 'console' || name === 'shellscript') return 'bash'
  if (name === 'toml') return 'ini'
  return languages.includes(name) ? name : byEnding.get(name)
}

/** The hikidashi format in a JSON media type: `application/json;format=hikidashi.SearchFound`. */
export function formatOf(mimeType: string | undefined): string | undefined {
  return /;\s*format=hikidashi\.([A-Za-z]{1,64})\s*$/.exec(mimeType ?? '')?.[1]
}
