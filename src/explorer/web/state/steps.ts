/** Adds a step to the history of the browser. */
export function pushStep(fragment: string): void {
  history.pushState(null, '', fragment)
}

/** Replaces the current step. */
export function replaceStep(fragment: string): void {
  history.replaceState(null, '', fragment)
}

/** Goes one step back. */
export function stepBack(): void {
  history.back()
}

/** Follows the history of the browser: the listener gets the current fragment now and after each step. */
export function followSteps(listener: (fragment: string) => void): void {
  const follow = () => listener(location.hash)
  addEventListener('popstate', follow)
  addEventListener('hashchange', follow)
  follow()
}
