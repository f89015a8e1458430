// protocol is the version of the messages between a frame and its parent.
export const protocol = 1;
