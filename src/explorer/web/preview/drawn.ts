import './drawn.css'
import { made, scrollable } from './dressed.ts'
import type { FormulaNode } from './model/formula.ts'
import type { Drawn } from './model/mermaid.ts'
import { t } from './words.ts'
import { inWorker } from './workers.ts'

const formulaTimeoutMs = 5000
/** Longer than for a formula, because the first diagram waits until the drawing code is loaded. */
const diagramTimeoutMs = 10_000
/** Maximum number of formulas and diagrams drawn in a document; others stay as source. */
const maxFormulas = 1000
const maxDiagrams = 50
/** Number of time-outs after which drawing stops for a document. */
const maxTimeouts = 3

const formulaTask = inWorker('formula', formulaTimeoutMs)
const diagramTask = inWorker('diagram', diagramTimeoutMs)

/** Draws the `drawables` of a document one after the other in a worker, so that the page never blocks. */
export async function draw(elements: readonly HTMLElement[], signal: AbortSignal): Promise<void> {
  const isDiagram = (element: HTMLElement) => element.className === 'language-mermaid'
  await Promise.all([
    inTurns(elements.filter((element) => !isDiagram(element)).slice(0, maxFormulas), signal, drawFormula),
    inTurns(elements.filter(isDiagram).slice(0, maxDiagrams), signal, drawDiagram),
  ])
}

/** Draws elements one after the other. `one` draws an element, and resolves to whether it timed out. */
async function inTurns(
  elements: readonly HTMLElement[],
  signal: AbortSignal,
  one: (element: HTMLElement, signal: AbortSignal) => Promise<boolean>,
): Promise<void> {
  let timeouts = 0
  for (const element of elements) {
    if (signal.aborted || timeouts >= maxTimeouts) return
    if (await one(element, signal)) timeouts++
  }
}

async function drawFormula(code: HTMLElement, signal: AbortSignal): Promise<boolean> {
  const isBlock = code.parentElement?.nodeName === 'PRE'
  const isDisplayed = isBlock || code.className === 'language-math-displayed'
  const answer = await formulaTask({ tex: code.textContent ?? '', isDisplayed })
  if (signal.aborted) return false
  if (answer?.formula === undefined) {
    code.title = t('formulaFailed')
    code.classList.add('formula-failed')
    return answer === undefined
  }
  const box = made('span', { className: isDisplayed ? 'formula formula-displayed' : 'formula' })
  box.append(nodeOf(answer.formula))
  const replaced = isBlock ? (code.parentElement ?? code) : code
  replaced.replaceWith(box)
  // A formula that is wider than the page scrolls by itself, also by keys.
  if (isDisplayed && box.scrollWidth > box.clientWidth) scrollable(box, 'group', t('formula'))
  return false
}

function nodeOf(node: FormulaNode): Node {
  if (typeof node === 'string') return document.createTextNode(node)
  const element = document.createElementNS('http://www.w3.org/1998/Math/MathML', node.name) as MathMLElement
  for (const [name, value] of Object.entries(node.attributes)) element.setAttribute(name, value)
  Object.assign(element.style, node.style)
  element.append(...node.children.map(nodeOf))
  return element
}

async function drawDiagram(code: HTMLElement, signal: AbortSignal): Promise<boolean> {
  const pre = code.parentElement
  if (pre?.nodeName !== 'PRE') return false
  const drawn = await diagramTask({ text: code.textContent ?? '' })
  if (signal.aborted || !pre.isConnected) return false
  if (drawn === undefined || 'reason' in drawn) {
    pre.before(noteOf(drawn))
    return drawn === undefined
  }
  const figure = made('figure', { className: 'drawn' })
  const scroll = made('div', { className: 'drawn-scroll' })
  scrollable(scroll, 'group', t('drawnDiagram'))
  for (const theme of ['light', 'dark'] as const) scroll.append(imageOf(drawn[theme], theme, figure))
  const details = document.createElement('details')
  details.append(made('summary', { textContent: t('source') }))
  figure.append(scroll, details)
  pre.replaceWith(figure)
  details.append(pre)
  return false
}

/** One drawing. It is an image, so nothing in it runs or is fetched. */
function imageOf(svg: string, theme: 'light' | 'dark', figure: HTMLElement): HTMLImageElement {
  const image = made('img', { className: `drawn-${theme}`, alt: t('drawnDiagramAlt') })
  const url = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }))
  const done = () => URL.revokeObjectURL(url)
  image.addEventListener('load', done, { once: true })
  image.addEventListener('error', () => {
    done()
    const pre = figure.querySelector('pre')
    if (pre !== null) figure.replaceWith(noteOf({ reason: 'broken' }), pre)
  })
  image.src = url
  return image
}

function noteOf(drawn: Exclude<Drawn, { readonly light: string }> | undefined): HTMLElement {
  const text =
    drawn === undefined
      ? t('diagramSlow')
      : drawn.reason === 'kind'
        ? t('diagramKind', { kind: drawn.kind })
        : t(drawn.reason === 'large' ? 'diagramLarge' : 'diagramBroken')
  return made('p', { className: 'drawn-note', textContent: text })
}
