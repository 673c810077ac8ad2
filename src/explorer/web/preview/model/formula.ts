import temml from 'temml'
import { maxFormulaLength } from './bounds.ts'

/** An element of MathML with its children, or a text. */
export type FormulaNode = string | FormulaElement

export interface FormulaElement {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly style: Readonly<Record<string, string>>
  readonly children: readonly FormulaNode[]
}

const maxFormulaNodes = 3000

/** Maximum length that a formula may ask for, such as a space, in em. */
const maxFormulaEm = 40

const names = new Set([
  ...['math', 'mrow', 'mi', 'mn', 'mo', 'ms', 'mtext', 'mspace', 'mfrac', 'msqrt', 'mroot', 'mstyle', 'mpadded'],
  ...['mphantom', 'msub', 'msup', 'msubsup', 'munder', 'mover', 'munderover', 'mmultiscripts', 'mprescripts', 'none'],
  ...['mtable', 'mtr', 'mtd', 'menclose'],
])

const attributes = new Set([
  ...['display', 'displaystyle', 'scriptlevel', 'mathvariant', 'stretchy', 'symmetric', 'fence', 'separator', 'form'],
  ...['lspace', 'rspace', 'largeop', 'movablelimits', 'accent', 'accentunder', 'minsize', 'maxsize', 'width', 'height'],
  ...['depth', 'voffset', 'linethickness', 'columnalign', 'rowspacing', 'columnspacing', 'columnlines', 'rowlines'],
  ...['columnspan', 'rowspan', 'notation', 'mathcolor', 'mathbackground', 'mathsize', 'dir'],
])

const properties =
  /^(?:color|backgroundColor|fontSize|fontWeight|fontStyle|textAlign|width|(?:padding|border)(?:Left|Right|Top|Bottom)?)$/
const plainValue = /^(?!.*(?:url|var|image|expression)\b)[\w#%., ()+-]{1,60}$/i

interface LibraryNode {
  readonly type?: unknown
  readonly text?: unknown
  readonly attributes?: Readonly<Record<string, unknown>>
  readonly style?: Readonly<Record<string, unknown>>
  readonly children?: readonly LibraryNode[]
}

/**
 * Converts a formula from TeX to MathML. Listed elements, attributes and styles are copied, so the formula cannot link, load anything or
 * cover the page.
 *
 * @returns `undefined` for a text that is not a formula, and for a formula that is too large.
 */
export function formulaOf(tex: string, isDisplayed: boolean): FormulaElement | undefined {
  if (tex.length > maxFormulaLength) return undefined
  try {
    const tree = temml.__renderToMathMLTree(tex, {
      displayMode: isDisplayed,
      throwOnError: true,
      strict: false,
      trust: false,
      maxExpand: 500,
      maxSize: [maxFormulaEm, maxFormulaEm],
    }) as LibraryNode
    const budget = { left: maxFormulaNodes }
    const [root] = copied(tree, budget)
    return typeof root === 'object' && root.name === 'math' && budget.left >= 0 ? root : undefined
  } catch {
    // The library throws on unknown input, and a formula may be nested deeper than the call stack allows.
    return undefined
  }
}

function copied(node: LibraryNode, budget: { left: number }): readonly FormulaNode[] {
  if (--budget.left < 0) return []
  if (typeof node.text === 'string') return [node.text]
  const children = (node.children ?? []).flatMap((child) => copied(child, budget))
  // An element that is not in the list is replaced by its children.
  if (typeof node.type !== 'string' || !names.has(node.type)) return children
  return [
    {
      name: node.type,
      attributes: pickPlainValues(node.attributes, (name) => attributes.has(name)),
      style: pickPlainValues(node.style, (name) => properties.test(name)),
      children,
    },
  ]
}

function pickPlainValues(values: Readonly<Record<string, unknown>> = {}, isKept: (name: string) => boolean) {
  const strings = Object.entries(values).map(([name, value]) => [name, String(value)] as const)
  return Object.fromEntries(strings.filter(([name, value]) => isKept(name) && plainValue.test(value)))
}
