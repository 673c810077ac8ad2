/** In a host, the history of the reader is in memory, because the history of the browser belongs to the host. */
const steps: string[] = ['']
let listener: (fragment: string) => void = () => {}

export const pushStep: typeof import('../state/steps.ts').pushStep = (fragment) => {
  steps.push(fragment)
  if (steps.length > maxSteps) steps.shift()
}

export const replaceStep: typeof import('../state/steps.ts').replaceStep = (fragment) => {
  steps[steps.length - 1] = fragment
}

export const stepBack: typeof import('../state/steps.ts').stepBack = () => {
  if (steps.length > 1) steps.pop()
  listener(steps.at(-1) ?? '')
}

export const followSteps: typeof import('../state/steps.ts').followSteps = (follow) => {
  listener = follow
  follow(steps.at(-1) ?? '')
}

/** Goes to the target of a link within the page. */
export function stepTo(fragment: string): void {
  pushStep(fragment)
  listener(fragment)
}

const maxSteps = 200
