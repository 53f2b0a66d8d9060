// Writes the lines of ../values.txt: values of Java in the hessian2 of the provider whose jar is on the class path. See ../README.md.
import com.alibaba.com.caucho.hessian.io.*;
import java.io.*; import java.util.*; import java.math.*;
public class Vectors {
  public enum Colour { RED, GREEN }
  public static class Line implements Serializable { String sku; int count; Line next; public Line(){} Line(String s,int c){sku=s;count=c;} }
  static void put(String name, Object... values) throws Exception {
    ByteArrayOutputStream b = new ByteArrayOutputStream();
    Hessian2Output o = new Hessian2Output(b);
    try { for (Object v: values) o.writeObject(v); } catch (Throwable t) { System.out.println("# " + name + " " + t); return; }
    o.flush();
    StringBuilder s = new StringBuilder();
    for (byte x: b.toByteArray()) s.append(String.format("%02x", x));
    System.out.println(name + " " + s);
  }
  public static void main(String[] a) throws Exception {
    put("null", (Object) null); put("true", true); put("false", false);
    for (int i: new int[]{0,-16,-17,47,48,-2048,-2049,2047,2048,-262144,-262145,262143,262144,Integer.MIN_VALUE,Integer.MAX_VALUE}) put("int:"+i, i);
    for (long i: new long[]{0,-8,-9,15,16,-2048,-2049,2047,2048,-262144,-262145,262143,262144,Integer.MIN_VALUE,Integer.MAX_VALUE,Integer.MIN_VALUE-1L,Integer.MAX_VALUE+1L,Long.MIN_VALUE,Long.MAX_VALUE}) put("long:"+i, i);
    for (double d: new double[]{0,1,-1,2,-128,-129,127,128,-32768,-32769,32767,32768,0.001,12.25,0.1,1.005,3.14159,1e300,-0.5,1e-3,123456.789,2147483.647,2147483.648,65.536}) put("double:"+d, d);
    put("double:NaN", Double.NaN); put("double:inf", Double.POSITIVE_INFINITY);
    for (float f: new float[]{0.1f, 1.5f, 3.3f, 1e10f}) put("float:"+f, f);
    for (long t: new long[]{0, 60000, 59999, -60000, -1, 894621091000L, 894621060000L, 128849018820000L, 128849018880000L, -128849018880000L, -128849018940000L}) put("date:"+t, new Date(t));
    put("short", (short) -5); put("byte", (byte) 100); put("char", 'x');
    put("text:empty", ""); put("text:mixed", "h\u00e9llo \u4e2d\u6587 \ud83d\ude00 \u0000\u07ff\u0800\uffff");
    put("bytes:empty", new byte[0]); put("bytes:3", new byte[]{1,2,-1});
    put("list:empty", new ArrayList<>()); put("list:7", new ArrayList<>(Arrays.asList(1,2L,3.5,"x",null,true,new ArrayList<>())));
    put("list:8", new ArrayList<>(Arrays.asList(1,2,3,4,5,6,7,8)));
    put("linkedlist", new LinkedList<>(Arrays.asList("a","b"))); put("hashset", new HashSet<>(Arrays.asList("a"))); put("treeset", new TreeSet<>(Arrays.asList("a")));
    put("int[]", new int[]{1,2}); put("int[8]", new int[8]); put("String[]", (Object) new String[]{"a",null}); put("Object[]", (Object) new Object[]{1,"a"});
    put("long[]", new long[]{1}); put("double[]", new double[]{1.5}); put("boolean[]", new boolean[]{true}); put("char[]", "ab".toCharArray()); put("short[]", new short[]{1}); put("float[]", new float[]{1.5f});
    put("int[][]", (Object) new int[][]{{1},{2}}); put("Integer[]", (Object) new Integer[]{1}); put("Date[]", (Object) new Date[]{new Date(0)});
    put("two-typed", new int[]{1}, new int[]{2});
    Map<Object,Object> m = new HashMap<>(); put("map:empty", m); m.put("a", 1); put("map", m);
    put("linkedhashmap", new LinkedHashMap<>(m)); put("treemap", new TreeMap<>(m));
    put("bigdecimal", new BigDecimal("12.50")); put("biginteger", new BigInteger("123456789012345678901234567890"));
    put("enum", Colour.RED, Colour.GREEN);
    Line l = new Line("x", 2); l.next = l; put("object-cycle", l); put("objects", new Line("a",1), new Line("b",2));
    put("same-twice", l, l);
    ArrayList<Object> shared = new ArrayList<>(); shared.add(1); put("shared", shared, shared, new ArrayList<>(Arrays.asList(shared)));
    IllegalStateException e = new IllegalStateException("no stock");
    e.setStackTrace(Arrays.copyOf(e.getStackTrace(), 1));
    put("exception", e);
    IllegalStateException c = new IllegalStateException("outer", new RuntimeException("inner"));
    c.setStackTrace(new StackTraceElement[0]); c.getCause().setStackTrace(new StackTraceElement[0]);
    put("exception-cause", c);
    put("exception-null", new NullPointerException());
    put("class", String.class); put("locale", Locale.GERMANY); put("uuid", new UUID(1, 2));
    ArrayList<Object> many = new ArrayList<>(); for (int i = 0; i < 3; i++) many.add(new Line("s" + i, i)); put("list-of-objects", many);
  }
}
