/** What the event trigger notifies. Whoever can connect can notify it too: it is a reason to look, and no more. */
export const channel = 'hikidashi'
