import './formulas.css'
import { createElement, makeScrollable } from './elements.ts'
import type { FormulaNode } from './model/formula.ts'
import { t } from './words.ts'
import { createWorkerTask } from './workers.ts'

const formulaTimeoutMs = 5000
/** Maximum number of formulas drawn in a document; others stay as source. */
const maxFormulas = 1000
/** Number of time-outs and failures of the worker after which drawing stops for a document. */
const maxTimeouts = 3

const formulaTask = createWorkerTask('formula', formulaTimeoutMs)

export async function drawFormulas(elements: readonly HTMLElement[], signal: AbortSignal): Promise<void> {
  let timeouts = 0
  for (const element of elements.slice(0, maxFormulas)) {
    if (signal.aborted || timeouts >= maxTimeouts) return
    if (await drawFormula(element, signal)) timeouts++
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
  const box = createElement('span', { className: isDisplayed ? 'formula formula-displayed' : 'formula' })
  box.append(renderFormulaNode(answer.formula))
  const replaced = isBlock ? (code.parentElement ?? code) : code
  replaced.replaceWith(box)
  // A formula that is wider than the page scrolls by itself, also by keys.
  if (isDisplayed && box.scrollWidth > box.clientWidth) makeScrollable(box, 'group', t('formula'))
  return false
}

function renderFormulaNode(node: FormulaNode): Node {
  if (typeof node === 'string') return document.createTextNode(node)
  const element = document.createElementNS('http://www.w3.org/1998/Math/MathML', node.name) as MathMLElement
  for (const [name, value] of Object.entries(node.attributes)) element.setAttribute(name, value)
  Object.assign(element.style, node.style)
  element.append(...node.children.map(renderFormulaNode))
  return element
}
