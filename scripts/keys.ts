/** Makes the tables of keys in docs/configuration.md from the schema that validates configurations. */
import { configJsonSchema } from '../src/config/explain.ts'
import { documentsShape } from '../src/schema/shapes.ts'

interface Schema {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
  readonly required?: readonly string[]
}

const root = (await configJsonSchema()) as Schema
const mounts = root.properties?.mounts?.additionalProperties as Schema
/** The mounts of the sources of the table. The options of others are known only to them. */
const kinds = (mounts.oneOf ?? []).filter(({ properties }) => properties?.provider?.const !== undefined)
const shared = ['title', 'description', 'access', 'scopes', 'cache', 'poll', 'limits', 'link']

const topOf = (key: string) => key.split(/[.[]/)[0] ?? ''
const isShared = (key: string) => shared.includes(topOf(key))
const isOfDocuments = (key: string) => Object.hasOwn(documentsShape, topOf(key))
/** Whether a key belongs to the table of one provider. The keys for documents are in a separate table. */
const isOwn = (key: string, { properties = {} }: Schema) =>
  !isShared(key) && !(isOfDocuments(key) && Object.keys(documentsShape).every((one) => one in properties))

/** Returns the tables, by the name in their marker in the page. */
export function keyTables(): Readonly<Record<string, string>> {
  return {
    file: table(root, (key) => !/^(?:http|clients|pages|changes)(?:\.|$)/.test(key)),
    http: table({ properties: { http: root.properties?.http ?? {} } }),
    clients: table({ properties: { clients: root.properties?.clients ?? {} } }),
    pages: table({ properties: { pages: root.properties?.pages ?? {} } }),
    changes: table({ properties: { changes: root.properties?.changes ?? {} } }),
    mount: table(kinds[0] ?? {}, isShared),
    documents: table(kinds.find(({ properties = {} }) => 'readings' in properties) ?? {}, isOfDocuments),
    ...providerTables(),
  }
}

/** The tables of the providers. A key that an earlier provider has with the same meaning is only named below the table. */
function providerTables(): Readonly<Record<string, string>> {
  const first = new Map<string, string>()
  return Object.fromEntries(
    kinds.map((mount) => {
      const provider = String(mount.properties?.provider?.const)
      const repeated = new Map<string, string>()
      for (const row of rowsOf(mount, '')) {
        const earlier = first.get(row.join('|'))
        if (earlier === undefined) first.set(row.join('|'), provider)
        else if (isOwn(row[0], mount)) repeated.set(row[0], isOfDocuments(row[0]) ? 'documents' : earlier)
      }
      const rows = table(mount, (key) => isOwn(key, mount) && !repeated.has(key))
      const origins = [...new Set(repeated.values())].map((origin) => {
        const keys = [...repeated].filter(([key, from]) => from === origin && repeated.get(topOf(key)) !== from)
        const tops = [...repeated].filter(([key, from]) => from === origin && topOf(key) === key)
        const names = [...tops, ...keys].map(([key]) => `\`${key}\``)
        const anchor = origin === 'documents' ? origin : `provider-${origin}`
        return `As in [${origin}](#${anchor}): ${names.join(', ')}.\n\n`
      })
      return [provider, `${rows}${origins.join('')}`]
    }),
  )
}

const aboutOf = ({ properties }: Schema) => properties?.provider?.description ?? ''

/** Replaces the text between `<!-- sources -->` and `<!-- /sources -->` in a page by the table of the sources. */
export function withSources(page: string): string {
  const place = /(<!-- sources -->\n).*?(<!-- \/sources -->)/s
  if (!place.test(page)) throw new Error('docs/providers/README.md has no place for the sources: <!-- sources -->')
  const rows = kinds.map((mount) => {
    const name = String(mount.properties?.provider?.const)
    return `| [${name}](${name}.md) | ${aboutOf(mount)} |`
  })
  const lines = ['| provider | source |', '|---|---|', ...rows.sort()].join('\n')
  return page.replace(place, (_, start: string, end: string) => `${start}\n${lines}\n\n${end}`)
}

/** Adds a section for each source that has none yet, before that of documents. */
function withSections(page: string): string {
  return kinds.reduce((text, mount) => {
    const name = String(mount.properties?.provider?.const)
    if (text.includes(`<!-- keys:${name} -->`)) return text
    const title = `## \`"provider": "${name}"\``
    const section = `${title}\n\n${aboutOf(mount)} ([Reference](providers/${name}.md).)\n\n<!-- keys:${name} -->\n<!-- /keys -->\n\n`
    return text.replace('\n## Documents\n', `\n${section}## Documents\n`)
  }, page)
}

/** Replaces the text between `<!-- keys:NAME -->` and `<!-- /keys -->` in a page by the tables. A new source gets a section. */
export function withKeyTables(page: string): string {
  return Object.entries(keyTables()).reduce((text, [name, rows]) => {
    const place = new RegExp(`(<!-- keys:${name} -->\n).*?(<!-- /keys -->)`, 's')
    if (!place.test(text))
      throw new Error(`docs/configuration.md has no place for the keys of ${name}: <!-- keys:${name} -->`)
    return text.replace(place, (_, start: string, end: string) => `${start}${rows}${end}`)
  }, withSections(page))
}

function table(schema: Schema, keep: (key: string) => boolean = () => true): string {
  const rows = [...rowsOf(schema, '')].filter(([key]) => keep(key))
  const lines = rows.map(([key, value, meaning]) => `| \`${key}\` | ${value} | ${meaning} |`)
  return `\n| key | value | meaning |\n|---|---|---|\n${lines.join('\n')}\n\n`
}

function* rowsOf(schema: Schema, prefix: string): Generator<readonly [key: string, value: string, meaning: string]> {
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const key = prefix === '' ? name : `${prefix}.${name}`
    const required = schema.required?.includes(name) === true ? ', required' : ''
    yield [key, kindOf(member) + required, (member.description ?? '').replaceAll('|', '\\|')]
    yield* rowsOf(member, key)
    // List the keys only if there is one object. The description explains the keys of several alternative objects.
    const [only, other] = member.anyOf?.filter(({ properties }) => properties !== undefined) ?? []
    if (only !== undefined && other === undefined) yield* rowsOf(only, key)
    const alternatives = [member.items ?? {}, ...(member.items?.anyOf ?? [])]
    for (const alternative of alternatives) yield* rowsOf(alternative, `${key}[]`)
  }
}

const words: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'number',
  integer: 'whole number',
  boolean: 'true or false',
  object: 'object',
}

function kindOf(schema: Schema): string {
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(' or ')
  if (schema.type === 'array') return `array of ${kindOf(schema.items ?? {})}`
  const alternatives = schema.anyOf?.map(kindOf) ?? [schema.type ?? []].flat().map((type) => words[type] ?? type)
  return [...new Set(alternatives)].join(' or ')
}
