import type { Resource } from '../../core/view.ts'
import { formatSize, formatUtcTime, type Output, resourceToJson } from '../terminal/io.ts'
import { type Colours, coloursFor, displayUri, displayWidth, escapeText, padDisplay } from '../terminal/text.ts'
import { lastUriSegment } from './source.ts'
import type { TokenCount, TreePosition, TreeTotals, TreeVisitor } from './tree-walk.ts'

interface TreePrinter extends TreeVisitor {
  end(): Promise<void>
}

export interface TreePrintOptions {
  readonly tokens: boolean
  readonly size: boolean
  readonly long: boolean
  readonly full: boolean
  readonly ascii: boolean
  /** Whether directories have totals. The tree is then printed at the end. */
  readonly isWhole: boolean
}

interface PrintedRow {
  cells: readonly string[]
  readonly text: string
}

const lines = {
  unicode: { through: '│   ', none: '    ', branch: '├── ', last: '└── ' },
  ascii: { through: '|   ', none: '    ', branch: '|-- ', last: '`-- ' },
} as const

const batch = 200

export function createTreePrinter(out: Output, options: TreePrintOptions): TreePrinter {
  const colours = coloursFor(out.isTerminal)
  const columns = chooseColumns(options)
  const { through, none, branch, last } = lines[options.ascii ? 'ascii' : 'unicode']
  const widths = columns.map(({ heading, least }) => Math.max(displayWidth(heading), options.isWhole ? 0 : least))
  let rows: PrintedRow[] = []
  let hasBegun = false
  const open: PrintedRow[] = []

  const prefixOf = (position: TreePosition) => {
    if (position.length === 0) return ''
    const above = position.slice(0, -1).map((isLast) => (isLast ? none : through))
    return above.join('') + (position.at(-1) === true ? last : branch)
  }
  const nameIn = (resource: Resource, position: TreePosition): string => {
    const uri = displayUri(resource.uri, out.isTerminal)
    const name = options.full || position.length === 0 ? uri : escapeText(lastUriSegment(resource.uri)) || uri
    return resource.uri.endsWith('/') && position.length > 0 && !options.full ? `${name}/` : name
  }
  const titleOf = ({ title }: Resource, position: TreePosition) =>
    title !== undefined && (options.long || position.length === 0) ? `  ${colours.dim(escapeText(title))}` : ''
  const flush = async () => {
    const heading = hasBegun || columns.length === 0 || rows.length === 0 ? [] : [headingOf(columns, widths, colours)]
    for (const { cells } of rows)
      for (const [i, cell] of cells.entries()) widths[i] = Math.max(widths[i] ?? 0, displayWidth(cell))
    const lines = rows.map(({ cells, text }) => {
      const line = [...cells.map((cell, i) => padDisplay(cell, widths[i] ?? 0, columns[i]?.side)), text].join('  ')
      return `${line}\n`
    })
    const first = heading.map(() => `${headingOf(columns, widths, colours)}\n`)
    if (rows.length > 0) hasBegun = true
    rows = []
    if (lines.length > 0) await out.write([...first, ...lines].join(''), { isStyled: true })
  }
  const print = async (row: PrintedRow) => {
    rows.push(row)
    if (!options.isWhole && rows.length >= batch) await flush()
  }
  const blank = columns.map(() => '')

  return {
    enter: async (directory, position) => {
      if (!options.isWhole) await flush()
      if (position.length === 0 && (hasBegun || rows.length > 0)) await print({ cells: blank, text: '' })
      const cells = columns.map(({ of }) => of(directory, undefined, undefined))
      const text = prefixOf(position) + colours.bold(nameIn(directory, position)) + titleOf(directory, position)
      const row: PrintedRow = { cells, text }
      open.push(row)
      await print(row)
    },
    add: async (resource, position, measured) => {
      const cells = columns.map(({ of }) => of(resource, measured, undefined))
      await print({ cells, text: prefixOf(position) + nameIn(resource, position) + titleOf(resource, position) })
    },
    more: (count, position) =>
      print({ cells: blank, text: prefixOf(position) + colours.dim(`… ${count.toLocaleString('en')} more`) }),
    fault: (message, position) =>
      print({ cells: blank, text: prefixOf(position) + colours.red(`[${escapeText(message)}]`) }),
    leave: async (directory, _, totals) => {
      const row = open.pop()
      if (row !== undefined && options.isWhole) row.cells = columns.map(({ of }) => of(directory, undefined, totals))
    },
    end: flush,
  }
}

interface PrintedColumn {
  readonly heading: string
  readonly side: 'left' | 'right'
  /** Initial width, for lines that are printed before others are known. */
  readonly least: number
  of(resource: Resource, measured: TokenCount | undefined, totals: TreeTotals | undefined): string
}

function chooseColumns({ tokens, size, long }: TreePrintOptions): readonly PrintedColumn[] {
  const columns: PrintedColumn[] = []
  if (tokens)
    columns.push({ heading: 'TOKENS', side: 'right', least: 10, of: (_, one, all) => formatTokens(all ?? one) })
  if (size || long)
    columns.push({
      heading: 'SIZE',
      side: 'right',
      least: 8,
      of: ({ size: bytes }, _, all) => formatKnown(all?.bytes ?? bytes, formatSize),
    })
  if (long)
    columns.push(
      { heading: 'MODIFIED', side: 'left', least: 20, of: ({ modified }) => formatKnown(modified, formatUtcTime) },
      { heading: 'TYPE', side: 'left', least: 16, of: ({ mimeType }) => escapeText(mimeType ?? '-') },
    )
  return columns
}

function headingOf(columns: readonly PrintedColumn[], widths: readonly number[], { dim }: Colours): string {
  return dim(
    columns
      .map(({ heading, side }, i) => padDisplay(heading, widths[i] ?? 0, side))
      .join('  ')
      .trimEnd(),
  )
}

/** Returns `-` if the number is not known. An estimate begins with `~`. */
export function formatTokens(counts: { readonly tokens?: number; readonly isEstimate: boolean } | undefined): string {
  if (counts?.tokens === undefined) return '-'
  return `${counts.isEstimate ? '~' : ''}${counts.tokens.toLocaleString('en')}`
}

function formatKnown(value: number | undefined, format: (value: number) => string): string {
  return value === undefined ? '-' : format(value)
}

/** Writes JSON during the walk: an array of roots, each with its `children`. */
export function createTreeJson({ write }: Output, options: Pick<TreePrintOptions, 'isWhole' | 'tokens'>): TreePrinter {
  const empty: boolean[] = []
  let more = new Map<number, Readonly<Record<string, unknown>>>()
  let hasRoots = false
  const item = (text: string, position: TreePosition) => {
    const isFirst = position.length === 0 ? !hasRoots : empty[position.length - 1] === true
    if (position.length === 0) hasRoots = true
    else empty[position.length - 1] = false
    return `${position.length === 0 && isFirst ? '[' : isFirst ? '' : ','}\n${'  '.repeat(position.length + 1)}${text}`
  }
  const factsOf = (measured: { readonly tokens?: number; readonly isEstimate: boolean } | undefined) =>
    measured?.tokens === undefined || !options.tokens
      ? {}
      : { tokens: measured.tokens, ...(measured.isEstimate ? { estimated: true } : {}) }
  return {
    enter: async (directory, position) => {
      await write(`${item(JSON.stringify(resourceToJson(directory)).slice(0, -1), position)},"children":[`)
      empty[position.length] = true
    },
    add: (resource, position, measured) =>
      write(item(JSON.stringify({ ...resourceToJson(resource), ...factsOf(measured) }), position)),
    more: async (count, position) => {
      more.set(position.length - 1, { ...more.get(position.length - 1), more: count })
    },
    fault: async (message, position) => {
      more.set(position.length - 1, { ...more.get(position.length - 1), failure: message })
    },
    leave: async (_, position, totals, isOpened) => {
      const { directories, resources, bytes } = totals
      const rest = {
        ...(isOpened ? {} : { opened: false }),
        ...more.get(position.length),
        ...(options.isWhole ? { total: { directories, resources, bytes, ...factsOf(totals) } } : {}),
      }
      more = new Map([...more].filter(([depth]) => depth !== position.length))
      const end = empty[position.length] === true ? ']' : `\n${'  '.repeat(position.length + 1)}]`
      const facts = JSON.stringify(rest).slice(1, -1)
      await write(`${end}${facts === '' ? '' : `,${facts}`}}`)
    },
    end: () => write(hasRoots ? '\n]\n' : '[]\n'),
  }
}
