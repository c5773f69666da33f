/** JMH benchmarks; each also runs once as a test. */
@NullMarked
package bifocal.benchmarks;

import org.jspecify.annotations.NullMarked;
